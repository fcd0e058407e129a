//! Reported messages on the resources of examples.

use function_paved_road::apis::Flavour;
use serde_json::json;

use crate::support::{self, world};
use crate::{UNRESOLVED, reject, slot};

/// A reported case: an example, the errors of its providers by slot, and the wanted reason and code
/// of each slot.
type Reported = (&'static str, &'static [(&'static str, &'static str, &'static str, &'static str)]);

/// The errors of public reports, and their siblings.
const REPORTED: &[Reported] = &[
    // provider-upjet-aws#459: a mistyped region.
    (
        "gpu-workspace",
        &[(
            "instance",
            "observe failed: cannot run refresh: refresh failed: error configuring Terraform AWS \
             Provider: error validating provider credentials: error calling sts:GetCallerIdentity: \
             operation error STS: GetCallerIdentity, exceeded maximum number of attempts, 9, https \
             response error StatusCode: 0, RequestID: , request send failed, Post \
             \"https://sts.us-est-1.amazonaws.com/\": dial tcp: lookup \
             sts.us-est-1.amazonaws.com on 10.96.0.10:53: no such host",
            "Failed",
            "Unreachable",
        )],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "connect failed: cannot get terraform setup: failed to retrieve credentials: operation \
             error STS: AssumeRole, request send failed, Post \
             \"https://sts.us-east-1.amazonaws.com/\": proxyconnect tcp: dial tcp 192.0.2.1:3128: \
             connect: connection refused",
            "Failed",
            "Unreachable",
        )],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "observe failed: operation error EC2: DescribeInstances, request send failed, Post \
             \"https://ec2.us-east-1.amazonaws.com/\": dial tcp 192.0.2.4:443: i/o timeout",
            "Failed",
            "Unreachable",
        )],
    ),
    (
        "virtual-environment",
        &[(
            "argocd",
            "create failed: failed to install release: failed to pull chart: looks like \
             \"https://charts.exmaple.org\" is not a valid chart repository or cannot be reached: \
             Get \"https://charts.exmaple.org/index.yaml\": dial tcp: lookup charts.exmaple.org on \
             10.96.0.10:53: no such host",
            "Failed",
            "Unreachable",
        )],
    ),
    // The environment's own hosts: a service of the virtual cluster, and one inside of it.
    (
        "virtual-environment",
        &[
            (
                "argocd",
                "connect failed: cannot create new kubernetes client: Get \
                 \"https://preview-7x9kd-5f0c9.preview-7x9kd.svc:443/version\": dial tcp: lookup \
                 preview-7x9kd-5f0c9.preview-7x9kd.svc on 10.96.0.10:53: no such host",
                "Waiting",
                "WaitsFor",
            ),
            (
                "knative-serving",
                "cannot apply object: Internal error occurred: failed calling webhook \
                 \"config.webhook\": failed to call webhook: Post \
                 \"https://operator-webhook.knative-operator.svc:443/?timeout=10s\": dial tcp \
                 10.96.9.9:443: connect: connection refused",
                "Waiting",
                "WaitsFor",
            ),
        ],
    ),
    // A missing policy of Settings, and its dependents.
    (
        "gpu-workspace",
        &[
            (
                "role",
                "create failed: operation error IAM: CreateRole, https response error StatusCode: \
                 404, NoSuchEntity: Scope ARN: arn:aws:iam::123456789012:policy/boundry does not \
                 exist or is not attachable.",
                "Failed",
                "SettingsReference",
            ),
            ("role-ssm", UNRESOLVED, "Waiting", "WaitsFor"),
            ("instance-profile", UNRESOLVED, "Waiting", "WaitsFor"),
            ("instance", UNRESOLVED, "Waiting", "WaitsFor"),
        ],
    ),
    // A missing object without another explanation, and its dependents.
    (
        "gpu-workspace",
        &[
            (
                "role",
                "create failed: operation error IAM: CreateRole, https response error StatusCode: \
                 404, NoSuchEntity: The thing cannot be found.",
                "Failed",
                "Unknown",
            ),
            ("role-ssm", UNRESOLVED, "Waiting", "WaitsFor"),
            ("instance-profile", UNRESOLVED, "Waiting", "WaitsFor"),
        ],
    ),
    // A name that the function chose, before its resource exists.
    (
        "gpu-workspace",
        &[
            ("instance-profile", UNRESOLVED, "Waiting", "WaitsFor"),
            (
                "instance",
                "Value (ada-x7k2p-5f0c9) for parameter iamInstanceProfile.name is invalid. Invalid \
                 IAM Instance Profile name",
                "Waiting",
                "WaitsFor",
            ),
        ],
    ),
    (
        "application-environment",
        &[
            (
                "gke-cluster",
                "create failed: googleapi: Error 404: Not found: projects/acme-dve., notFound",
                "Failed",
                "SettingsReference",
            ),
            (
                "node-pool",
                "create failed: googleapi: Error 404: Not found: \
                 projects/acme-dev/locations/europe-west1/clusters/shop-q4m8d-2b7d4., notFound",
                "Waiting",
                "WaitsFor",
            ),
        ],
    ),
    (
        "gpu-workspace",
        &[(
            "role",
            "create failed: operation error IAM: CreateRole, LimitExceeded: Cannot exceed quota \
             for RolesPerAccount: 1000",
            "Failed",
            "QuotaExceeded",
        )],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "connect failed: cannot get terraform setup: cannot get credentials secret: secrets \
             \"aws-creds\" is forbidden: User \
             \"system:serviceaccount:crossplane-system:provider-aws\" cannot get resource \
             \"secrets\" in API group \"\" in the namespace \"crossplane-system\"",
            "Failed",
            "AccessDenied",
        )],
    ),
    (
        "virtual-environment",
        &[
            (
                "knative",
                "create failed: failed to install release: Unable to continue with install: Secret \
                 \"web\" in namespace \"app\" exists and cannot be imported into the current \
                 release: invalid ownership metadata; annotation validation error: key \
                 \"meta.helm.sh/release-name\" not found",
                "Failed",
                "NameTaken",
            ),
            (
                "argocd",
                "create failed: failed to install release: execution error at \
                 (web/templates/deploy.yaml:3:4): secret db-credentials not found, create it first",
                "Failed",
                "Unknown",
            ),
        ],
    ),
    (
        "gpu-workspace",
        &[(
            "instance",
            "connect failed: cannot get credentials secret: Secret \"aws-creds\" not found",
            "Waiting",
            "WaitsForSecret",
        )],
    ),
];

/// An example that is ready, as the claims API.
fn example(name: &str) -> support::Example {
    let is_it = |example: &support::Example| {
        example.api.info().name == name
            && example.flavour == Flavour::Claims
            && example.state == "ready"
    };
    support::examples().into_iter().find(is_it).unwrap()
}

#[test]
fn reported_errors_have_their_effect_and_cause() {
    for (name, errors) in REPORTED {
        let example = example(name);
        let mut observed = example.observed();
        for (of, message, ..) in *errors {
            let object = observed.iter_mut().find(|object| slot(object) == *of).unwrap();
            reject(object, "2026-11-21T08:59:00Z", message);
        }
        let request = support::request(&example.xr(), &observed, &example.input());
        let status = world::status(&support::answer(request));
        let lines = status["resources"].as_array().unwrap();
        for (of, message, reason, code) in *errors {
            let line = lines.iter().find(|line| line["slot"] == *of).unwrap();
            let actual =
                (line["reason"].as_str().unwrap(), line["cause"]["code"].as_str().unwrap());
            assert_eq!(actual, (*reason, *code), "{of}: {message}");
            assert!(line["cause"]["params"]["slot"] != *of, "{of} waits for itself");
        }
        let fails = errors.iter().any(|(.., reason, _)| *reason == "Failed");
        let phase = if fails { "Failed" } else { "Provisioning" };
        assert_eq!(status["phase"], phase, "{name}: {errors:?}");
    }
}

/// The words of Argo CD about an app whose chart it cannot read or apply.
#[test]
fn app_whose_chart_fails_has_the_cause_of_its_chart() {
    for (words, code) in [
        (
            "Failed to load target state: failed to generate manifest for source 1 of 1: rpc \
             error: code = Unknown desc = error fetching chart: failed to fetch chart: `helm pull \
             --repo https://charts.exmaple.org podinfo` failed exit status 1: Error: looks like \
             \"https://charts.exmaple.org\" is not a valid chart repository or cannot be reached: \
             Get \"https://charts.exmaple.org/index.yaml\": dial tcp: lookup charts.exmaple.org on \
             10.96.0.10:53: no such host",
            "Unreachable",
        ),
        (
            "Failed to load target state: `helm template . --name-template app` failed exit \
             status 1: Error: execution error at (web/templates/deploy.yaml:3:4): secret \
             db-credentials not found, create it first",
            "Unknown",
        ),
        (
            "one or more objects failed to apply, reason: Secret \"web\" in namespace \"app\" \
             exists and cannot be imported into the current release: invalid ownership metadata; \
             annotation validation error: key \"meta.helm.sh/release-name\" not found",
            "NameTaken",
        ),
    ] {
        let example = example("virtual-environment");
        let mut observed = example.observed();
        let app = observed.iter_mut().find(|object| slot(object) == "app-application").unwrap();
        let status = &mut app["status"]["atProvider"]["manifest"]["status"];
        assert!(status.is_object(), "the example has no Application");
        if code == "NameTaken" {
            status["operationState"] = json!({"phase": "Failed", "message": words});
            status["sync"]["status"] = json!("OutOfSync");
            status["health"]["status"] = json!("Missing");
        } else {
            status["conditions"] = json!([{"type": "ComparisonError", "message": words}]);
        }
        let request = support::request(&example.xr(), &observed, &example.input());
        let status = world::status(&support::answer(request));
        let lines = status["resources"].as_array().unwrap();
        let line = lines.iter().find(|line| line["slot"] == "app-application").unwrap();
        assert_eq!((&line["reason"], &line["cause"]["code"]), (&json!("Failed"), &json!(code)));
        assert_eq!(status["phase"], "Failed");
    }
}
