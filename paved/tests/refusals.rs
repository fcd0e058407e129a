//! Errors are reported completely, with their exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::{assert_golden, example, folder, paved, paved_with, within};

const WRONG: &str = "\
apiVersion: platform.acme.io/v1alpha1
kind: GpuDevWorkspaceClaim
metadata:
  name: Ada
spec:
  parameters:
    owner: 3
    opencvVersion: 4.8
    diskGb: 200
    diskGB: 1
    sshPublicKeys: nope
";

#[test]
fn all_schema_errors_are_reported_at_once() {
    assert_golden("refused", &paved_with(&["preview", "-"], WRONG).told());
}

#[test]
fn an_unknown_kind_lists_ours_and_the_nearest() {
    let told =
        paved_with(&["preview", "-"], WRONG.replace("GpuDevWorkspaceClaim", "GpuWorkspaceClaim"))
            .told();
    let known =
        told.split("allowed: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    assert!(known.contains("ApplicationEnvironment, "), "{told}");
    assert_golden("unknown-kind", &told.replace(known, "… every kind …"));
}

/// Whether a terminal or GitHub's runner would execute commands in a text.
fn is_obeyed(told: &str) -> bool {
    let bidi =
        |c: char| ('\u{200e}'..='\u{200f}').contains(&c) || ('\u{2028}'..='\u{202e}').contains(&c);
    told.contains("##[")
        || told.lines().any(|line| line.trim_start().starts_with("::"))
        || told.chars().any(|c| (c.is_control() && c != '\n') || bidi(c))
}

#[test]
fn previewed_file_commands_neither_a_terminal_nor_github() {
    let words = r"k\u001b]0;x\u0007\u009b2J\u202e\n::stop-commands::x\n  ::error::##[error]y";
    let pool = |name: &str, key: &str, value: &str| {
        format!(
            "{{\"apiVersion\": \"platform.acme.io/v1alpha1\", \"kind\": \"StockPool\", \"metadata\": \
             {{\"name\": \"{name}\", \"annotations\": {{\"a.b/c\": \"{value}\"}}}}, \"spec\": \
             {{\"parameters\": {{\"image\": \"ghcr.io/a/b:1\", \"{key}\": \"{value}\"}}}}}}"
        )
    };
    let files = [
        pool("pool", words, "x"),
        pool("pool", "image", words),
        pool(words, "image", "ghcr.io/a/b:1"),
        pool("pool", "::warning::x", "x"),
        pool("pool", "image", "x").replace("StockPool", &format!("Stock{words}")),
        pool("pool", "image", "x").replace("StockPool", "Stock\\n::warning::x"),
        pool("pool", "image", "x").replace("v1alpha1", &format!("v1{words}")),
        pool("pool", "image", "x").replace("parameters", &format!("{words}\": 1, \"parameters")),
    ];
    for file in files {
        for flags in
            [&[][..], &["-o", "tree"], &["-o", "json"], &["-o", "yaml"], &["--until-ready"]]
        {
            let run = paved_with(&[&["preview", "-"], flags].concat(), &file);
            assert!(
                !is_obeyed(&run.out) && !is_obeyed(&run.err),
                "{flags:?} {file}: {}",
                run.told()
            );
        }
        let run = paved_with(&["validate", "-"], &file);
        assert!(!is_obeyed(&run.out) && !is_obeyed(&run.err), "{file}: {}", run.told());
    }
}

#[test]
fn workspace_without_networks_has_a_note() {
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    let mut claim: serde_json::Value = serde_saphyr::from_str(&claim).unwrap();
    let composition = example("gpu-workspace/composition.yaml");
    let mut told = |networks: serde_json::Value, flags: &[&str]| {
        claim["spec"]["parameters"]["allowedCidrs"] = networks;
        let args = [&["preview", "-", "--composition", &composition], flags].concat();
        let run = paved_with(&args, claim.to_string());
        assert_eq!(run.code, 0, "{}", run.err);
        run.err
    };
    let note = "SSH is closed, because no network is allowed";
    for flags in [&[][..], &["--until-ready"], &["-o", "tree"]] {
        assert!(told(serde_json::json!([]), flags).contains(note), "{flags:?}");
        assert!(!told(serde_json::json!(["203.0.113.0/24"]), flags).contains(note), "{flags:?}");
    }
}

#[test]
fn documents_keep_values_that_a_terminal_would_obey() {
    let value = "a\u{9b}2J\u{202e}\n::stop-commands::x ##[error]y";
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    let mut claim: serde_json::Value = serde_saphyr::from_str(&claim).unwrap();
    claim["metadata"]["annotations"] = serde_json::json!({"acme.io/note": value});
    let composition = example("gpu-workspace/composition.yaml");
    for format in ["json", "yaml"] {
        let args = ["preview", "-", "--composition", &composition, "-o", format];
        let claim = claim.to_string().replace('\u{9b}', r"\u009b").replace('\u{202e}', r"\u202e");
        let run = paved_with(&args, &claim);
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(!is_obeyed(&run.out), "{}", run.out);
        let first = run.out.split("---\n").find(|text| !text.is_empty()).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(first).unwrap();
        let composite = if format == "json" { &read["items"][0] } else { &read };
        assert_eq!(composite["metadata"]["annotations"]["acme.io/note"], value, "{}", run.out);
    }
}

#[test]
fn a_version_that_is_not_served_is_refused() {
    let run = paved_with(&["preview", "-"], WRONG.replace("v1alpha1", "v1"));
    assert_eq!(run.code, 2);
    assert!(
        run.err
            .contains("apiVersion: found platform.acme.io/v1; allowed: platform.acme.io/v1alpha1"),
        "{}",
        run.err
    );
}

#[test]
fn a_claim_without_a_name_is_refused() {
    let run = paved_with(&["preview", "-"], WRONG.replace("name: Ada", "labels: {}"));
    assert_eq!(run.code, 2);
    assert!(run.err.contains("metadata.name: is missing; allowed: a string"), "{}", run.err);
}

#[test]
fn immutable_field_is_compared_with_the_cluster() {
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    let folder = folder(&[
        ("stored.yaml", &claim),
        ("new.yaml", &claim.replace("    owner:", "    region: eu-west-1\n    owner:")),
    ]);
    let composition = example("gpu-workspace/composition.yaml");
    let (stored, new) = (within(&folder, "stored.yaml"), within(&folder, "new.yaml"));
    let run = paved(&["preview", &new, "--observed", &stored, "--composition", &composition]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains(r#"spec.parameters.region: found "eu-west-1": "#), "{}", run.err);
    assert_eq!(
        paved(&["preview", &stored, "--observed", &stored, "--composition", &composition]).code,
        0
    );
}

#[test]
fn credentials_in_a_url_are_refused_and_never_shown() {
    let claim = std::fs::read_to_string(example("virtual-environment/claim.yaml")).unwrap();
    for (field, found) in [
        ("repoURL: ", "https://user:hunter2@git.example.org/a.git"),
        ("repoURL: ", "https://git.example.org/a.git?token=hunter2"),
        ("repoURL: ", "git:hunter2@git.example.org:a/b.git"),
        ("repository: ", "https://user:hunter2@charts.example.org"),
    ] {
        let (before, after) = claim.split_once(field).unwrap();
        let rest = after.split_once('\n').unwrap().1;
        let run = paved_with(&["preview", "-"], format!("{before}{field}{found:?}\n{rest}"));
        assert_eq!(run.code, 2, "{found}: {}", run.err);
        assert!(!run.err.contains("hunter2"), "{}", run.err);
        let why = "found a URL with credentials or a query; allowed: a URL without credentials \
                   and query, because a claim must not have secrets";
        assert!(run.err.contains(why), "{found}: {}", run.err);
    }
    let image = "https://user:hunter2@registry.example.org/app";
    let pool = std::fs::read_to_string(example("stock-pool/claim.yaml")).unwrap();
    let run = paved_with(
        &["preview", "-"],
        pool.replace("spec:\n", &format!("spec:\n  image: {image}\n")),
    );
    assert!(
        run.code == 2 && run.err.contains(r#"found "https://…@registry.example.org/app""#),
        "{}",
        run.err
    );
}

#[test]
fn invalid_yaml_is_reported_with_its_position() {
    let folder = folder(&[("broken.yaml", "a: [1,\nb: 2\n")]);
    let run = paved(&["preview", &within(&folder, "broken.yaml")]);
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("broken.yaml:1:4") && run.err.contains("unclosed bracket"),
        "{}",
        run.err
    );
    for command in ["preview", "apply", "validate"] {
        let run = paved_with(&[command, "-"], "a: [1,\nb: 2\n");
        assert!(
            run.code == 1 && run.told().contains("standard input:1:4"),
            "{command}: {}",
            run.told()
        );
        let list = paved_with(&[command, "-"], "- 1\n");
        assert!(
            list.code == 1 && list.told().contains("found a list"),
            "{command}: {}",
            list.told()
        );
    }
}

#[test]
fn broken_document_is_never_quoted() {
    let broken = "kind: Secret\nstringData:\n  password: hunter2\n bad\n  token: hunter3\n";
    let list = "- password: hunter2\n";
    for text in [broken, list] {
        for command in [&["preview", "-"][..], &["validate", "-"], &["apply", "-"]] {
            let run = paved_with(command, text);
            assert!(run.code != 0 && !run.told().contains("hunter"), "{command:?}: {}", run.told());
        }
    }
}

#[test]
fn subfolders_are_skipped_with_a_note() {
    let folder = folder(&[("a.yaml", WRONG)]);
    std::fs::create_dir_all(folder.path().join("team\n::error::x")).unwrap();
    let run = paved(&["validate", &within(&folder, ""), "-o", "github"]);
    assert!(run.err.lines().all(|line| !line.starts_with("::")), "{}", run.err);
    assert!(run.err.contains("skipped folders: ") && run.err.contains("team"), "{}", run.told());
}

#[test]
fn unusable_kubeconfig_is_reported_in_one_line() {
    let user = |user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: c}}}}]\nusers: [{{name: c, user: {user}}}]\n"
        )
    };
    let plugin = |script: &str| {
        let exec =
            "apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never";
        user(&format!("{{exec: {{{exec}, args: [-c, '{script}', hunter2]}}}}"))
    };
    for (kubeconfig, words) in [
        (user("{client-certificate-data: '!', client-key-data: '!'}"), "the kubeconfig is invalid"),
        (plugin("echo hunter3; echo log in first >&2; exit 1"), "failed: log in first"),
        (plugin("echo token=hunter3"), "printed no ExecCredential"),
        (plugin("exit 3"), "failed (exit status: 3)"),
        (
            user("{client-certificate: /no/cert, client-key: /no/key}"),
            "client-certificate could not be read: /no/cert: ",
        ),
        (user("{}"), "does not respond"),
        ("kind: [".to_owned(), "kubeconfig"),
    ] {
        let folder = folder(&[("config", &kubeconfig)]);
        let run = paved(&["list", "--kubeconfig", &within(&folder, "config")]);
        assert_eq!((run.code, run.err.lines().count()), (6, 1), "{}", run.told());
        assert!(run.err.contains(words) && !run.err.contains("hunter"), "{}", run.told());
    }
    let folder = folder(&[("config", &user("{}"))]);
    let run = paved(&["list", "-n", "my team", "--kubeconfig", &within(&folder, "config")]);
    assert!(run.code == 1 && run.err.contains("--namespace: found \"my team\""), "{}", run.told());
}

#[test]
fn no_document_is_too_strange_to_be_refused() {
    let head = "apiVersion: platform.acme.io/v1alpha1\nkind: GpuDevWorkspaceClaim\n";
    for body in [
        "",
        "metadata: []",
        "metadata: {name: [1]}",
        "metadata: {name: a, labels: x}",
        "metadata: {name: a}\nspec: text",
        "metadata: {name: a}\nspec: {parameters: 7}",
        "metadata: {name: a}\nspec: {parameters: null}",
        "metadata: {name: \"\\u202E\"}",
        "metadata: {name: a}\nspec: {resourceRef: 3, parameters: {owner: a}}",
        "metadata: {name: a}\nspec: {parameters: {owner: [{}]}}\nstatus: no",
    ] {
        let run = paved_with(&["preview", "-"], format!("{head}{body}"));
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{body}: {}", run.err);
    }
    for text in ["", "- 1", "7", "kind: 3", "kind: [x]", "{}", "a: &a [*a]", "\u{0}"] {
        let run = paved_with(&["preview", "-"], text);
        assert!([1, 2].contains(&run.code), "{text}: {}", run.err);
    }
}

#[test]
fn senseless_observed_state_causes_no_panic() {
    let strange = "apiVersion: ec2.aws.upbound.io/v1beta2\nkind: Instance\nstatus: text\nspec: [1]\nmetadata: {name: i, \
                   annotations: {crossplane.io/composition-resource-name: instance}, ownerReferences: 7}\n---\n\
                   apiVersion: v1\nkind: Secret\ndata: 3\n---\nkind: List\nitems: {}\n";
    let folder = folder(&[("strange.yaml", strange)]);
    let run = paved(&[
        "preview",
        &example("gpu-workspace/claim.yaml"),
        "--observed",
        &within(&folder, "strange.yaml"),
        "--until-ready",
    ]);
    assert!([0, 3, 4].contains(&run.code), "{}", run.err);
}

#[test]
fn usage_has_its_own_exit_code() {
    let empty = folder(&[]);
    let nothing = empty.path().display().to_string();
    for args in [
        &["preview"][..],
        &["preview", "--no-such-flag", "x"],
        &["preview", "no-such-file.yaml"],
        &["preview", &nothing],
        &["preview", "x", "--fail", "a=b"],
        &["apply", "x", "--timeout", "5m"],
        &["apply", "x", "--patience", "5m"],
        &["delete", "x", "--timeout", "5m"],
        &["wait", "x", "--for=deleted", "--output-file", "x.env"],
        &["completions", "klingon"],
    ] {
        let run = paved(args);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{args:?}");
        assert!(run.err.starts_with("error: "), "{args:?}: {}", run.err);
    }
}

#[test]
fn flag_without_effect_is_rejected() {
    let claim = example("gpu-workspace/claim.yaml");
    for file in ["--settings", "--composition"] {
        let run = paved(&["apply", &claim, "--no-validate", file, "platform.yaml"]);
        assert_eq!((run.code, run.out.as_str()), (1, ""));
        assert!(run.err.contains("have no effect with --no-validate"), "{}", run.err);
    }
}

#[test]
fn help_is_an_answer_with_examples_and_exit_codes() {
    let run = paved(&["preview", "--help"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.contains("Examples:") && run.out.contains("Exit codes:"));
}

#[test]
fn fatal_result_is_reported_without_output() {
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml"))
        .unwrap()
        .replace("g4dn.xlarge", "g4dn.xlrge");
    let folder = folder(&[("claim.yaml", &claim)]);
    let composition = example("gpu-workspace/composition.yaml");
    for format in ["yaml", "tree"] {
        let run = paved(&[
            "preview",
            &within(&folder, "claim.yaml"),
            "--composition",
            &composition,
            "-o",
            format,
        ]);
        assert_eq!((run.code, run.out.as_str()), (3, ""));
        assert!(
            run.err.contains(r#"spec.parameters.instanceType: found "g4dn.xlrge""#),
            "{}",
            run.err
        );
    }
}

#[test]
fn one_wrong_file_does_not_keep_the_others_from_being_shown() {
    let folder = folder(&[("wrong.yaml", WRONG)]);
    let run =
        paved(&["preview", &within(&folder, "wrong.yaml"), &example("gpu-workspace/claim.yaml")]);
    assert_eq!((run.code, run.documents()[0]["kind"].as_str()), (2, Some("GpuDevWorkspace")));
    assert!(run.err.contains("wrong.yaml: GpuDevWorkspaceClaim Ada is rejected"), "{}", run.err);
}

#[test]
fn unknown_slot_is_rejected_with_the_known_slots() {
    let run = paved(&[
        "preview",
        &example("gpu-workspace/claim.yaml"),
        "--until-ready",
        "--fail",
        "machine=quota",
    ]);
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("--fail machine: unknown slot; allowed: egress, egress-v6, instance,"),
        "{}",
        run.err
    );
}
