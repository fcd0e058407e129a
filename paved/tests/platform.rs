//! `paved platform`: manifests for Git, and the effect of changed Settings.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests;
use function_paved_road::manifests::policy::{CROSSPLANE, policies};
use serde_json::{Value, json};
use support::{assert_golden, example, folder, paved, within};

const SETTINGS: &str = "\
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
schemaRevision: 1
tags:
  cost-center: \"4711\"
gpuWorkspace:
  amis:
    us-east-1:
      default: ami-0123456789abcdef0
  allowedCidrs: [203.0.113.0/24]
";

#[test]
fn manifests_equal_the_packaged_ones() {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    for flavour in Flavour::ALL {
        let run = paved(&["platform", "--settings", &settings, "--flavour", flavour.name()]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        let group = flavour.default_group();
        let mut expected: Vec<Value> =
            APIS.iter().map(|api| manifests::xrd(*api, flavour, group)).collect();
        // The function has the name in docs/how-to/install.md and in the packages.
        let function = xtask::package::Registry::default().installed_function();
        assert!(
            include_str!("../../docs/how-to/install.md")
                .contains(&format!("functionRef:\n      name: {function}\n"))
        );
        let composition = |api| manifests::installed_composition(api, flavour, group, &function);
        expected.extend(APIS.iter().map(|api| composition(*api)));
        expected.extend(policies(&[(flavour, group)], CROSSPLANE));
        let mut documents = run.documents();
        let config = documents.pop().unwrap();
        assert_eq!(documents, expected);
        assert_eq!(config["metadata"]["name"], "paved-road");
        assert_eq!(config["data"]["tags"], json!({"cost-center": "4711"}));
        assert!(
            config["data"].get("schemaRevision").is_none() && config["data"].get("kind").is_none()
        );
    }
}

#[test]
fn a_companys_own_group_and_function_are_in_every_manifest() {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    let out = within(&folder, "platform");
    let args = [
        "platform",
        "--settings",
        &settings,
        "--group",
        "platform.example.org",
        "--flavour",
        "namespaced",
    ];
    let run = paved(&[&args[..], &["--function", "acme-function", "-o", &out]].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_golden("platform-files", &run.out.replace(&out, "platform"));
    let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap();
    for text in [read("xrd/gpu-workspace.yaml"), read("composition.yaml"), read("policy.yaml")] {
        assert!(text.contains("platform.example.org") && !text.contains("acme.io"), "{text}");
    }
    let compositions: Vec<Value> = serde_saphyr::from_multiple(&read("composition.yaml")).unwrap();
    assert_eq!(compositions.len(), APIS.len());
    for composition in compositions {
        assert_eq!(composition["spec"]["pipeline"][0]["functionRef"]["name"], "acme-function");
        assert!(composition["metadata"]["labels"]["provider"].is_string());
    }
    let user = "system:serviceaccount:upbound-system:crossplane";
    let other = within(&folder, "other");
    let by = ["--group", "platform.example.org", "--crossplane-user", user, "-o", &other];
    assert_eq!(paved(&[&args[..3], &by].concat()).code, 0);
    let policies = std::fs::read_to_string(format!("{other}/policy.yaml")).unwrap();
    assert!(policies.contains(user) && !policies.contains(CROSSPLANE), "{policies}");
    let config = within(&folder, "platform/environmentconfig.yaml");
    assert_eq!(paved(&["validate", &config]).code, 0);
    // The written Settings are valid input, and a second run overwrites the same files.
    let again = paved(
        &[
            &["platform", "--settings", &config][..],
            &args[3..],
            &["--function", "acme-function", "-o", &out],
        ]
        .concat(),
    );
    assert_eq!(again.told(), run.told());
}

#[test]
fn argo_cd_has_a_health_check_for_every_kind() {
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let settings = within(&folder, "settings.yaml");
    let args = ["platform", "--settings", &settings, "--argocd"];
    let keys = |more: &[&str]| -> Vec<String> {
        let run = paved(&[&args, more].concat());
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        let [config] = &run.documents()[..] else { panic!("{}", run.out) };
        let mut data = config["data"].as_object().unwrap().clone();
        let method = data.remove("application.resourceTrackingMethod");
        assert_eq!(method, Some("annotation".into()), "labels would prune composites");
        assert!(data.values().all(|script| script.as_str().unwrap().contains("Stalled")));
        data.keys().cloned().collect()
    };
    let claims = keys(&[]);
    assert_eq!(claims.len(), 2 * APIS.len());
    let claim = "resource.customizations.health.platform.acme.io_GpuDevWorkspaceClaim";
    assert!(claims.contains(&claim.to_owned()), "{claims:?}");
    let own = keys(&["--flavour", "namespaced", "--group", "platform.example.org"]);
    assert_eq!(own.len(), APIS.len());
    assert!(own.iter().all(|key| key.contains(".health.platform.example.org_")), "{own:?}");
}

#[test]
fn invalid_settings_are_refused_with_every_reason() {
    let wrong = SETTINGS
        .replace("default: ami-0123456789abcdef0", "default: nope")
        .replace("tags:\n", "tagz:\n")
        + "stockPool: 3\n";
    let folder =
        folder(&[("settings.yaml", &wrong), ("two.yaml", &format!("{SETTINGS}---\n{SETTINGS}"))]);
    let settings = within(&folder, "settings.yaml");
    for more in [&[][..], &["--check", &example("gpu-workspace/claim.yaml")]] {
        let run = paved(&[&["platform", "--settings", &settings][..], more].concat());
        assert_eq!((run.code, run.out.as_str()), (3, ""), "{}", run.err);
        for told in [
            "settings.yaml:4:1",
            "gpuWorkspace.amis.us-east-1.default: found \"nope\"",
            "stockPool: found 3",
        ] {
            assert!(run.err.contains(told), "{told}: {}", run.err);
        }
    }
    for args in [
        &["platform"][..],
        &["platform", "--settings", "/no/such"],
        &["platform", "--settings", &within(&folder, "two.yaml")],
    ] {
        let run = paved(args);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{args:?} {}", run.err);
    }
}

#[test]
fn check_shows_the_effect_of_new_settings() {
    let folder = folder(&[
        ("old.yaml", SETTINGS),
        ("new.yaml", &SETTINGS.replace("4711", "4712").replace("203.0.113", "198.51.100")),
    ]);
    let (old, new) = (within(&folder, "old.yaml"), within(&folder, "new.yaml"));
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    std::fs::write(within(&folder, "claim.yaml"), claim.split("    allowedCidrs").next().unwrap())
        .unwrap();
    let claim = within(&folder, "claim.yaml");
    let shown = |text: String| text.replace(&claim, "claim.yaml");
    let run = paved(&["platform", "--settings", &new, "--old", &old, "--check", &claim]);
    assert_golden("platform-check", &shown(run.told()));
    let run = paved(&["platform", "--settings", &new, "--old", &new, "--check", &claim]);
    assert_eq!(
        shown(run.told()),
        "claim.yaml: GpuDevWorkspaceClaim ada: nothing changes\n--- exit code 0\n"
    );
    let run = paved(&["platform", "--settings", &new, "--check", &claim]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.contains(
            "without the new Settings: settings.gpuWorkspace.amis.us-east-1: missing; allowed: \
             the machine image of us-east-1"
        ),
        "{}",
        run.err
    );
}

#[test]
fn check_shows_resources_that_wait_for_others() {
    let own = "unifiedEnvironment:\n  ingress: {domain: apps.example.org}\n  resources: {medium: {memory: 3Gi}}\n";
    let folder = folder(&[
        ("old.yaml", SETTINGS),
        ("new.yaml", &format!("{SETTINGS}{own}")),
        (
            "typo.yaml",
            "apiVersion: platform.acme.io/v1alpha1\nkind: StokPool\nmetadata: {name: a}\n",
        ),
    ]);
    let [old, new, typo] = ["old.yaml", "new.yaml", "typo.yaml"].map(|name| within(&folder, name));
    let claim = example("unified-environment/claim.yaml");
    let run = paved(&["platform", "--settings", &new, "--old", &old, "--check", &claim]);
    assert_eq!(run.code, 0, "{}", run.err);
    for part in ["@@ backend-deployment @@", "memory: 3Gi", "@@ backend-ingress @@"] {
        assert!(run.out.contains(part), "{part}: {}", run.told());
    }
    // A note names each skipped document.
    let both = format!(
        "{}---\n{}",
        std::fs::read_to_string(&claim).unwrap(),
        std::fs::read_to_string(&typo).unwrap()
    );
    std::fs::write(&typo, both).unwrap();
    let run = paved(&["platform", "--settings", &old, "--old", &old, "--check", &typo]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.contains("StokPool a is skipped: kind: unknown kind \"StokPool\""),
        "{}",
        run.err
    );
}

#[test]
fn running_resource_keeps_its_values() {
    let (old, new) =
        (SETTINGS.to_owned(), SETTINGS.replace("ami-0123456789abcdef0", "ami-0fedcba9876543210"));
    let folder = folder(&[("old.yaml", &old), ("new.yaml", &new)]);
    let (old, new) = (within(&folder, "old.yaml"), within(&folder, "new.yaml"));
    let (claim, ready) =
        (example("gpu-workspace/claim.yaml"), example("gpu-workspace/observed/ready.yaml"));
    let args = ["platform", "--settings", &new, "--old", &old, "--check", &claim];
    let fresh = paved(&args);
    assert!(fresh.out.contains("ami-0fedcba9876543210"), "{}", fresh.told());
    let running = paved(&[&args[..], &["--observed", &ready]].concat());
    assert_eq!((running.code, running.err.as_str()), (0, ""));
    assert!(running.out.ends_with(": nothing changes\n"), "{}", running.out);
}

#[test]
fn environment_that_the_new_settings_reject_is_reported() {
    let none =
        "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\ngpuWorkspace: {}\n";
    let folder = folder(&[("old.yaml", SETTINGS), ("new.yaml", none)]);
    let (old, new) = (within(&folder, "old.yaml"), within(&folder, "new.yaml"));
    let (claim, pool) = (example("gpu-workspace/claim.yaml"), example("stock-pool/claim.yaml"));
    let run = paved(&["platform", "--settings", &new, "--old", &old, "--check", &claim, &pool]);
    assert_eq!(run.code, 3, "{}", run.told());
    assert!(
        run.err.contains(
            "settings.gpuWorkspace.amis.us-east-1: missing; allowed: the machine image \
             of us-east-1"
        ),
        "{}",
        run.err
    );
    assert!(
        run.out.contains("stock-pool/claim.yaml: StockPool"),
        "the other environments are still reported: {}",
        run.out
    );
}

#[test]
fn no_secret_is_shown() {
    let invalid = "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\n\
                   applicationEnvironment: {databaseVersion: MYSQL_8}\n";
    let folder = folder(&[("new.yaml", SETTINGS), ("old.yaml", invalid)]);
    let (old, new) = (within(&folder, "old.yaml"), within(&folder, "new.yaml"));
    let xr = example("application-environment/namespaced/xr.yaml");
    // The old Settings are rejected, so all resources are new, including the Secret with the
    // database's password.
    let run = paved(&["platform", "--settings", &new, "--old", &old, "--check", &xr]);
    assert_eq!(run.code, 0, "{}", run.err);
    let secret = run.out.split("@@ ").find(|part| part.contains("kind: Secret")).unwrap();
    let data = secret.split("+ data:\n").nth(1).unwrap();
    let values: Vec<&str> = data.lines().take_while(|line| line.starts_with("+   ")).collect();
    assert!(!values.is_empty() && values.iter().all(|line| line.ends_with(": …")), "{secret}");
}
