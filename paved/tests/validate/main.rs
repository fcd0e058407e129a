//! `paved validate` reports errors with their positions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod lifecycle;
mod notes;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;

use serde_json::Value;
use support::{assert_golden, by_line, example, folder, paved, paved_with, within};

const EXAMPLES: [&str; 5] = [
    "application-environment",
    "gpu-workspace",
    "stock-pool",
    "unified-environment",
    "virtual-environment",
];

/// Many documents, most of them invalid, in every style of YAML.
const WRONG: &str = r#"apiVersion: platform.acme.io/v1alpha1
kind: GpuDevWorkspaceClaim
metadata:
  name: Ada
spec:
  parameters:
    opencvVersion: 4.8
    diskGb: 200
    diskGB: 1
    sshPublicKeys: nope
---
apiVersion: v1
kind: ConfigMap
metadata: {name: beside-it}
---
# A typing error in the group, and one in the kind.
apiVersion: platfrom.acme.io/v1alpha1
kind: GpuWorkspaceClaim
metadata: {name: why}
---
apiVersion: platform.m.acme.io/v1alpha1
kind: XStockPool
metadata: {name: wrong-flavour}
spec: {replicas: 1, specName: a100}
---
{"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool", "metadata": {"name": "json"},
  "spec": {"specName": "a/b", "replicas": -1}}
---
apiVersion: platform.acme.io/v1alpha1
kind: StockPool
metadata: {name: anchors}
spec:
  specName: &name "two words"
  image: *name
  replicas: 1
---
apiVersion: platform.acme.io/v1alpha1
kind: EnvironmentClaim
metadata: {name: shop}
spec:
  backend: &backend
    image: ghcr.io/acme/shop:1
    env:
      TEXT: |
        a block
        of text
      we.ird key: 7
  database:
    size: tiny
  frontend:
    <<: *backend
---
apiVersion: platform.acme.io/v1alpha1
kind: Environment
metadata: {name: cel}
spec:
  parameters:
    type: aks
    expose: loadBalancer
    gitops: {repoURL: "https://user:hunter2@git.example.org/a.git"}
---
kind: no
 yaml: here
---
kind: List
items:
- apiVersion: platform.acme.io/v1alpha1
  kind: GpuDevWorkspaceClaim
  metadata: {name: in-a-list}
  spec:
    parameters:
      owner: ada
      instanceType: g4dn.huge
---
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
gpuWorkspace:
  amis: {us-east-1: {default: ami-1, byfamily: {}}}
  networks:
    us-east-1: {subnetId: subnet-0123456789abcdef0}
stockpool: {}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: paved-road}
data:
  environment: {charts: {vcluster: "0.10.0"}}
"#;

#[test]
fn error_is_reported_with_its_position() {
    let folder = folder(&[("claims.yaml", WRONG)]);
    let file = within(&folder, "claims.yaml");
    let shown = |told: String| told.replace(&file, "claims.yaml");
    assert_golden("validate-text", &shown(paved(&["validate", &file]).told()));
    assert_golden("validate-github", &shown(paved(&["validate", &file, "-o", "github"]).told()));
    let json = paved(&["validate", &file, "-o", "json"]).told();
    assert_golden("validate-json", &by_line(&shown(json)));
}

#[test]
fn line_ends_and_byte_order_marks_move_no_position() {
    let windows = format!("\u{feff}{}", WRONG.replace('\n', "\r\n"));
    let folder = folder(&[("claims.yaml", WRONG)]);
    let other = self::folder(&[("claims.yaml", &windows)]);
    let told = |file: String| {
        paved(&["validate", "-o", "github", &file]).told().replace(&file, "claims.yaml")
    };
    assert_eq!(told(within(&folder, "claims.yaml")), told(within(&other, "claims.yaml")));
}

#[test]
fn every_example_is_valid() {
    for name in EXAMPLES {
        for flavour in ["", "namespaced/"] {
            let of = |path: &str| example(&format!("{name}/{flavour}{path}"));
            let run = paved(&["validate", &example(&format!("{name}/{flavour}"))]);
            assert_eq!(run.code, 0, "{name} {flavour}: {}", run.err);
            let lines: Vec<&str> = run.out.lines().collect();
            assert_eq!(lines.len(), if flavour.is_empty() { 3 } else { 2 }, "{}", run.out);
            assert!(lines.iter().all(|line| line.ends_with(" is valid")), "{}", run.out);
            let notes: Vec<&str> = run.err.lines().collect();
            let [folders, functions @ ..] = &notes[..] else { panic!("{name} {flavour}: no note") };
            assert!(folders.starts_with("note: skipped folders: ") && folders.contains("observed"));
            let is_function = |note: &&str| {
                note.ends_with("skipped, not a Paved Road kind: Function function-paved-road")
            };
            assert!(functions.len() == 2 && functions.iter().all(is_function), "{functions:?}");
            if Path::new(&of("variants")).is_dir() {
                let run =
                    paved(&["validate", &of("variants"), "--composition", &of("composition.yaml")]);
                assert_eq!((run.code, run.err.as_str()), (0, ""), "{name} {flavour}");
            }
        }
    }
    let run = paved(&["validate", &example("gpu-workspace/claim.yaml")]);
    assert_eq!(
        run.told(),
        "examples/gpu-workspace/claim.yaml: GpuDevWorkspaceClaim ada is valid\n--- exit code 0\n"
    );
}

#[test]
fn settings_in_a_file_count_for_its_composites() {
    for flavour in ["", "namespaced/"] {
        let rds = example(&format!("unified-environment/{flavour}variants/rds.yaml"));
        let run = paved(&["validate", &rds]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
        let text = std::fs::read_to_string(&rds).unwrap();
        let broken = paved_with(&["validate", "-"], text.replace("subnetGroup: environments", ""));
        assert_eq!(broken.code, 3, "{}", broken.err);
        assert!(broken.err.contains("subnetGroup: missing"), "{}", broken.err);
        let tree = paved(&["preview", &rds, "-o", "tree"]);
        assert_eq!(tree.code, 0, "{}", tree.err);
        assert!(tree.out.contains("postgres-instance"), "no separate server: {}", tree.out);
    }
}

/// Invalid claims and Settings: the file's text, the exit code, and the line and column with the
/// message.
const BROKEN: [(&str, u8, &str); 16] = [
    ("a: [1,\nb: 2\n", 1, "1:4: invalid YAML: "),
    ("a: 1\na: 2\n", 1, "2:1: invalid YAML: "),
    ("a: b\nx: \"1", 1, "2:4: invalid YAML: "),
    ("- 1", 1, "1:3: found a list; allowed: a Kubernetes object"),
    (
        "kind: GpuDevWorkspaceClaim\nspec: {}\n",
        2,
        "1:1: apiVersion: found none; allowed: platform.acme.io/v1alpha1",
    ),
    (
        "apiVersion: platform.acme.io/v1\nkind: StockPool\n",
        2,
        "1:13: apiVersion: found platform.acme.io/v1; allowed: platform.acme.io/v1alpha1",
    ),
    (
        "apiVersion: platform.m.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\n",
        2,
        "1:13: apiVersion: found platform.m.acme.io/v1alpha1; allowed: platform.acme.io/v1alpha1",
    ),
    (
        "apiVersion: platform.acme.oi/v1alpha1\nkind: StockPool\n",
        2,
        "1:13: apiVersion: found platform.acme.oi/v1alpha1; allowed: platform.acme.io/v1alpha1",
    ),
    (
        "apiVersion: platform.acme.io/v1alpha1\nkind: StokPool\n",
        2,
        "2:7: kind: unknown kind \"StokPool\"; did you mean StockPool?; allowed: ",
    ),
    (
        "apiVersion: platform.acme.io/v1alpha1\nkind: StockPool\nmetadata: {name: a}\nspec: {specName: a}\n",
        2,
        "4:1: spec.replicas: is missing; allowed: an integer",
    ),
    (
        "apiVersion: platform.example.org/v1alpha1\nkind: StockPool\nmetadata: {name: a}\n",
        2,
        "1:1: spec: is missing",
    ),
    (
        "apiVersion: platform.acme.io/v1alpha1\nkind: StockPool\nspec: {specName: a, replicas: 1}\n",
        2,
        "1:1: metadata.name: is missing; allowed: a string",
    ),
    (
        "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\nmetadata: {name: a}\n\
         spec: {parameters: {owner: a, allowedCidrs: [10.0.0.0/8, x]}}\n",
        3,
        "4:58: spec.parameters.allowedCidrs[1]: found \"x\"; allowed: ",
    ),
    (
        "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\ngpuWorkspace: {allowedCidrs: [x]}\n",
        3,
        "3:31: gpuWorkspace.allowedCidrs[0]: found \"x\"; allowed: ",
    ),
    (
        "kind: Settings\ntags: {}\n",
        2,
        "1:1: apiVersion: found \"\"; allowed: paved-road.fn.crossplane.io/v1beta1",
    ),
    (
        "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: paved-road}\n\
         spec: {tags: {}}\n",
        3,
        "4:1: spec: unknown field; put the Settings of EnvironmentConfig in data",
    ),
];

#[test]
fn github_output_reports_the_position_of_errors() {
    for (text, code, told) in BROKEN {
        let run = paved_with(&["validate", "-", "-o", "github"], text);
        let commands: Vec<String> = run.out.lines().map(unescaped).collect();
        assert_eq!(run.code, code, "{text}: {commands:?} {}", run.err);
        assert!(commands.iter().any(|command| command.contains(told)), "{text}: {commands:?}");
    }
}

/// Documents with several errors, and the start of each message.
const SEVERAL: [(&str, &[&str]); 2] = [
    (
        "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\nmetadata: {name: a}\nspec:\n  parameters:\n    \
         owner: a\n    instanceType: p9.enormous\n    allowedCidrs: [x, 10.0.0.0/8, z]\n    sshPublicKeys: [nonsense]\n",
        &[
            "7:19: spec.parameters.instanceType: found \"p9.enormous\"",
            "8:20: spec.parameters.allowedCidrs[0]: found \"x\"",
            "8:35: spec.parameters.allowedCidrs[2]: found \"z\"",
            "9:21: spec.parameters.sshPublicKeys[0]: found \"nonsense\"",
        ],
    ),
    // Errors of the schema do not hide the function's other errors.
    (
        "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\nmetadata: {name: a}\nspec:\n  parameters:\n    \
         diskGb: 200\n    opencvVersion: 4.8\n    instanceType: p9.enormous\n    allowedCidrs: [1, z]\n",
        &[
            "5:3: spec.parameters.owner: is missing",
            "6:5: spec.parameters.diskGb: unknown field",
            "7:20: spec.parameters.opencvVersion: found 4.8",
            "8:19: spec.parameters.instanceType: found \"p9.enormous\"",
            "9:20: spec.parameters.allowedCidrs[0]: found 1",
            "9:23: spec.parameters.allowedCidrs[1]: found \"z\"",
        ],
    ),
];

#[test]
fn all_errors_are_reported_at_once() {
    for (text, told) in SEVERAL {
        let run = paved_with(&["validate", "-", "-o", "github"], text);
        let errors = run.out.lines().filter(|line| line.starts_with("::error "));
        let errors: Vec<String> = errors.map(unescaped).collect();
        assert_eq!((run.code, errors.len()), (3, told.len()), "{errors:#?}");
        for (error, begin) in errors.iter().zip(told) {
            assert!(error.starts_with(begin), "{error} does not start with {begin}");
        }
    }
}

/// `line:column: message` of a workflow command.
fn unescaped(command: &str) -> String {
    let part = |key: &str| {
        command.split(key).nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default()
    };
    let message = command.splitn(3, "::").nth(2).unwrap_or_default();
    format!("{}:{}: {message}", part("line="), part("col="))
}

#[test]
fn settings_that_a_cloud_refuses_are_refused_in_words() {
    const SETTINGS: &str = "\
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
tags: {department: \"R&D (Vision)\"}
gpuWorkspace:
  instanceTypes: [g5.xlrage]
  permissionsBoundary: DeveloperBoundary
applicationEnvironment: {databaseTier: db-n1-standard-1}
environment: {eks: {region: europe-west1}}
";
    let folder = folder(&[("settings.yaml", SETTINGS)]);
    let run = paved(&["validate", &within(&folder, "settings.yaml")]);
    assert_eq!(run.code, 3, "{}", run.err);
    for told in [
        "tags.department: found \"R&D (Vision)\"; allowed: letters, digits, spaces and \
         _ . : / = + - @ (for IAM)",
        "gpuWorkspace.permissionsBoundary: found \"DeveloperBoundary\"; allowed: the ARN of an IAM policy",
        "applicationEnvironment.databaseTier: found \"db-n1-standard-1\"; allowed: a Cloud SQL machine type",
        "environment.eks.region: found \"europe-west1\"; allowed: an AWS region, for example \
         eu-west-1",
    ] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    let mended =
        SETTINGS.replace("DeveloperBoundary", "arn:aws:iam::123456789012:policy/developers");
    let folder = crate::folder(&[("settings.yaml", &mended)]);
    let run = paved(&["validate", &within(&folder, "settings.yaml")]);
    let told =
        "gpuWorkspace.instanceTypes[0]: found \"g5.xlrage\"; allowed: a machine type of g4dn, ";
    assert!(run.err.contains(told), "{}", run.err);
}

#[test]
fn settings_that_are_named_are_checked_too() {
    let settings = "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\ntags: [a]\nstockPool: {x: 1}\n";
    let folder = folder(&[("settings.yaml", settings)]);
    let file = within(&folder, "settings.yaml");
    let run = paved(&["validate", &example("stock-pool/claim.yaml"), "--settings", &file]);
    assert_eq!(run.code, 3, "{}", run.err);
    for told in ["settings.yaml:3:1", "settings.yaml:4:13", "stockPool.x: unknown field"] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
}

#[test]
fn no_secret_is_shown() {
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----";
    for text in [
        "apiVersion: v1\nkind: Secret\nstringData: {a: hunter2: }\n x\n".to_owned(),
        "{\"kind\": \"Secret\", \"data\": {\"a\": \"hunter2\" \"b\"}}\n".to_owned(),
        format!(
            "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\nmetadata: {{name: a}}\n\
             spec: {{parameters: {{owner: a, sshPublicKeys: [\"{key} hunter2\"]}}}}\n"
        ),
        "apiVersion: platform.acme.io/v1alpha1\nkind: Environment\nmetadata: {name: a}\n\
         spec: {parameters: {gitops: {repoURL: \"https://u:hunter2@h.org/a\"}, tupe: \"https://h.org/a?token=hunter2\"}}\n"
            .to_owned(),
    ] {
        for form in ["text", "json", "github"] {
            let run = paved_with(&["validate", "-", "-o", form], &text);
            assert!([1, 2, 3].contains(&run.code), "{text}: {}", run.told());
            assert!(!run.told().contains("hunter2"), "{text}: {}", run.told());
        }
    }
}

#[test]
fn name_of_a_valid_file_is_not_a_command_for_github() {
    let folder = folder(&[(
        "::stop-commands::x.yaml",
        include_str!("../../../examples/gpu-workspace/claim.yaml"),
    )]);
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_paved"))
        .args(["validate", "-o", "github", "::stop-commands::x.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    assert!(told.contains("x.yaml: ") && told.contains("is valid"), "{told}");
    assert!(!told.contains("\n::stop") && !told.starts_with("::stop"), "{told}");
}

#[test]
fn text_of_a_file_is_not_a_command_for_a_terminal_or_github() {
    let text = "apiVersion: platform.acme.io/v1alpha1\nkind: StockPool\nmetadata: {name: \"a\\n::error::x\\e[2J\"}\n\
                spec: {\"x\\n::set-output name=a::b\": 1, specName: a, replicas: 1}\n";
    let run = paved_with(&["validate", "-", "-o", "github"], text);
    let commands = ["::error line=", "::notice::no Settings found, so paved"];
    assert!(
        run.out.lines().all(|line| commands.iter().any(|one| line.starts_with(one))),
        "{}",
        run.out
    );
    assert!(!run.told().contains('\u{1b}'), "{}", run.told());
    let run = paved_with(&["validate", "-"], text);
    assert!(!run.told().contains('\u{1b}'), "{}", run.told());
}

#[test]
fn json_is_one_object() {
    let run = paved_with(&["validate", "-", "-o", "json"], "a: [");
    let all: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(all["errors"][0]["refusedBy"], "syntax");
    assert_eq!(all["valid"], serde_json::json!([]));
}

mod anything {
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::string::string_regex;

    use super::support::paved_with;

    /// Pieces of YAML, and of our documents.
    const WORDS: &[&str] = &[
        "apiVersion: platform.acme.io/v1alpha1",
        "kind: StockPool",
        "kind: Settings",
        "kind: List",
        "items:",
        "spec:",
        "metadata: {name: a}",
        "apiVersion: paved-road.fn.crossplane.io/v1beta1",
        "- ",
        "  ",
        "\n",
        "\n---\n",
        ": ",
        "&a ",
        "*a",
        "<<: *a",
        "{",
        "}",
        "[",
        "]",
        "|",
        ">-",
        "\"",
        "'",
        "#",
        "\t",
        "\r\n",
        "é",
        "\u{1f600}",
        "!!str ",
        "? ",
        "gpuWorkspace:",
        "specName: a",
        "replicas: 1",
        "parameters:",
        "kind: Environment",
        "%YAML 1.2",
        "...",
        "null",
        "~",
        "1e999",
        "0x1F",
        "\u{0}",
        "\u{feff}",
        "spec: {parameters: {owner: a}}",
        "resourceRef: 3",
        "data: {environment: 3}",
        "kind: EnvironmentConfig",
        "apiVersion: apiextensions.crossplane.io/v1beta1",
    ];

    /// Text that resembles YAML.
    fn yaml() -> impl Strategy<Value = String> {
        let word =
            prop_oneof![select(WORDS).prop_map(str::to_owned), string_regex("\\PC{0,4}").unwrap()];
        proptest::collection::vec(word, 0..30).prop_map(|words| words.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        /// No text causes a panic, and the exit code is always valid.
        #[test]
        fn any_text_is_answered(text in yaml(), form in select(&["text", "json", "github"])) {
            let run = paved_with(&["validate", "-", "-o", form], &text);
            prop_assert!([0, 1, 2, 3].contains(&run.code), "{}", run.told());
        }
    }
}

#[test]
fn size_that_is_left_out_is_small() {
    let unified = |database: &str| {
        format!(
            "apiVersion: platform.acme.io/v1alpha1\nkind: EnvironmentClaim\nmetadata: {{name: shop, namespace: team}}\n\
             spec:\n  backend: {{image: ghcr.io/acme/shop:1}}\n  frontend: {{appName: shop}}\n{database}"
        )
    };
    for (left_out, small) in [
        (unified(""), unified("  database: {size: small}\n")),
        (unified("  database: {}\n"), unified("  database: {size: small}\n")),
    ] {
        let valid = paved_with(&["validate", "-"], &left_out);
        assert_eq!(valid.code, 0, "{}\n{left_out}", valid.err);
        let preview = |document: &str| paved_with(&["preview", "-"], document).out;
        assert!(preview(&small).contains("Provisioned"), "{}", preview(&small));
        assert_eq!(preview(&left_out), preview(&small));
    }
}
