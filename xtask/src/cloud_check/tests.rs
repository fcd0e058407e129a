#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use k8s_schema::Schemas;
use serde_json::json;

use super::left::{Search, regions};
use super::*;
use crate::yaml;

fn suite() -> PathBuf {
    workspace::root().join("e2e/cloud-check")
}

#[test]
fn every_check_has_a_folder() {
    let folders: BTreeSet<String> = fs::read_dir(suite())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, CHECKS.iter().map(|check| check.name.to_owned()).collect());
}

#[test]
fn claims_of_checks_are_valid() {
    let group = Flavour::Claims.default_group();
    let xrds: Vec<Value> =
        APIS.iter().map(|api| manifests::xrd(*api, Flavour::Claims, group)).collect();
    let schemas = Schemas::new(&xrds).unwrap();
    let mut environments = BTreeSet::new();
    for check in CHECKS {
        let test = yaml::read(&suite().join(check.name).join("chainsaw-test.yaml")).unwrap();
        let claim = &test[0]["spec"]["steps"][0]["try"][0]["apply"]["resource"];
        let definition = schemas.for_object(claim).unwrap();
        let violations = definition.validate(claim, None);
        assert!(violations.is_empty(), "{}: {violations:?}", check.name);
        // All checks run in parallel in one namespace.
        let environment = (claim["kind"].to_string(), claim["metadata"]["name"].to_string());
        assert!(environments.insert(environment), "{}: another check has this name", check.name);
        for other in ["/spec/steps/0/try/1/assert/resource", "/spec/steps/1/try/0/delete/ref"] {
            let other = test[0].pointer(other).unwrap();
            let name = other.get("name").unwrap_or(&other["metadata"]["name"]);
            assert_eq!(
                (&other["kind"], name),
                (&claim["kind"], &claim["metadata"]["name"]),
                "{}",
                check.name
            );
        }
    }
}

/// The real Chainsaw, if it is built.
#[test]
fn checks_pass_the_linter() {
    let Some(chainsaw) = tools::built(&tools::CHAINSAW) else { return };
    for check in CHECKS {
        let test = suite().join(check.name).join("chainsaw-test.yaml");
        let output =
            Command::new(&chainsaw).args(["lint", "test", "--file"]).arg(test).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn checks_above_the_price_are_refused() {
    let all = chosen(&[]).unwrap();
    assert_eq!(all.len(), CHECKS.len());
    assert!(price(&all, 2.0, 10.0).is_ok());
    let error = price(&all, 2.0, 1.0).unwrap_err().to_string();
    assert!(error.contains("allowed by --max-usd: 1.00"), "{error}");
    let one = chosen(&["unified-environment".to_owned()]).unwrap();
    assert!(price(&one, 2.0, 1.0).is_ok());
    assert!(chosen(&["unified".to_owned()]).is_err());
}

#[test]
fn missing_project_is_not_searched() {
    let google = chosen(&["application-environment".to_owned()]).unwrap();
    let searches = left::resources(&google, &json!({}), "local");
    let [search] = &searches[..] else { panic!("{searches:?}") };
    assert!(!search.is_clean(), "{search:?}");
}

#[test]
fn regions_come_from_settings() {
    let settings = json!({
        "gpuWorkspace": {"amis": {"eu-north-1": {}}},
        "environment": {"eks": {"region": "eu-west-1"}},
    });
    let regions: Vec<String> = regions(&settings).into_iter().collect();
    assert_eq!(regions, ["eu-north-1", "eu-west-1", "us-east-1"]);
}

#[test]
fn page_has_each_check_and_each_leftover() {
    let test = |name: &str, operations: Value| {
        json!({
            "name": name,
            "startTime": "2026-11-26T08:00:00Z",
            "endTime": "2026-11-26T08:12:30Z",
            "steps": [{"operations": operations}],
        })
    };
    let report = json!({"startTime": "2026-11-26T08:00:00Z", "tests": [
        test("gpu-workspace", json!([{"type": "apply"}])),
        test("unified-environment", json!([{"failure": {"error": "status.phase:\n a | b"}}])),
    ]});
    let left = [
        Search { place: "aws eu-west-1".to_owned(), found: Ok(vec!["arn:a".to_owned()]) },
        Search { place: "az".to_owned(), found: Ok(Vec::new()) },
        Search { place: "gcloud acme-dev".to_owned(), found: Err("no gcloud".to_owned()) },
    ];
    let page = page::results(&report, &left);
    for line in [
        "| gpu-workspace | passed | 12 |",
        "| unified-environment | status.phase:  a \\| b | 12 |",
        "| aws eu-west-1 | arn:a |",
        "| az | none |",
        "| gcloud acme-dev | not searched: no gcloud |",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}: {page}");
    }
    assert_eq!(left.map(|search| search.is_clean()), [false, true, false]);
}

#[test]
fn hours_that_lower_the_price_are_rejected() {
    assert_eq!(hours("1.5"), Ok(1.5));
    for text in ["-2", "0", "NaN", "inf", "soon"] {
        assert!(hours(text).unwrap_err().contains("expected a positive number"), "{text}");
    }
}
