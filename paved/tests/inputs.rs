//! Files, pipes and flags have the same meaning as in kubectl, and each file is read once.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::Write;
use std::os::fd::AsRawFd;

use serde_json::Value;
use support::{example, folder, paved, paved_with, within};

const SETTINGS: &str = "\
apiVersion: paved-road.fn.crossplane.io/v1beta1
kind: Settings
gpuWorkspace:
  amis: {us-east-1: {default: ami-0123456789abcdef0}}
";

const TWO: &str = "\
apiVersion: platform.acme.io/v1alpha1
kind: GpuDevWorkspaceClaim
metadata: {name: ada, namespace: team-vision}
spec: {parameters: {owner: ada}}
---
apiVersion: platform.acme.io/v1alpha1
kind: GpuDevWorkspaceClaim
metadata: {name: bob, namespace: team-vision}
spec: {parameters: {owner: bob}}
";

const POOL: &str = "\
apiVersion: platform.acme.io/v1alpha1
kind: StockPool
metadata: {name: pool, namespace: team-vision}
spec: {specName: g1, replicas: 1}
";

/// A file of `tests/inputs`.
fn input(name: &str) -> String {
    format!("{}/tests/inputs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// All values below a key, at any depth.
fn values<'v>(value: &'v Value, key: &str) -> Vec<&'v Value> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| if name == key { vec![value] } else { values(value, key) })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| values(item, key)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn octal_modes_are_read_as_kubectl_reads_them() {
    let run = paved(&["preview", &input("octal-mode.yaml")]);
    assert_eq!(run.code, 0, "{}", run.err);
    let modes: Vec<Value> = run
        .documents()
        .iter()
        .flat_map(|document| values(document, "defaultMode"))
        .cloned()
        .collect();
    assert_eq!(modes, [493]);
}

#[test]
fn a_commit_that_looks_like_a_number_is_a_text() {
    let run = paved(&["validate", &input("commit.yaml")]);
    assert_eq!(run.code, 0, "{}", run.err);
}

#[test]
fn numbers_that_would_change_are_rejected() {
    for command in ["validate", "preview"] {
        let run = paved(&[command, &input("big-integer.yaml")]);
        assert_eq!(run.code, 3, "{}", run.err);
        let told = "spec.parameters.app.values.channel: found 987654321098765433; allowed: up to 9007199254740991";
        assert!(run.err.contains(told), "{command}: {}", run.err);
        assert!(run.err.contains("Put it in quotes"), "{command}: {}", run.err);
    }
    let quoted = std::fs::read_to_string(input("big-integer.yaml")).unwrap();
    let quoted = quoted.replace("987654321098765433", "\"987654321098765433\"");
    assert_eq!(paved_with(&["validate", "-"], &quoted).code, 0);
}

#[test]
fn hint_quotes_the_file() {
    let file = input("quotes.yaml");
    let run = paved(&["validate", &file]);
    for text in ["4821e17", "no", "01067", "+4935112345", "0815"] {
        for told in [format!("found {text}; "), format!(", in quotes: \"{text}\"")] {
            assert!(run.err.contains(&told), "{told}: {}", run.err);
        }
    }
    // In quotes, this version is wrong too.
    let version = "found 4.10; allowed: a release with three or four numbers";
    assert!(run.err.contains(version), "{}", run.err);
    let run = paved(&["preview", &file]);
    assert!(run.err.contains(version), "{}", run.err);
    let mended = std::fs::read_to_string(&file).unwrap();
    let mended = ["4821e17", "no", "01067", "+4935112345", "0815"]
        .iter()
        .fold(mended, |text, wrong| text.replace(&format!(" {wrong}"), &format!(" \"{wrong}\"")))
        .replace("{name: n,", "{name: \"n\",");
    let run = paved_with(&["validate", "-"], &mended);
    assert!(!run.err.contains("in quotes"), "{}", run.err);
}

#[test]
fn a_whole_cluster_can_be_observed() {
    let state =
        std::fs::read_to_string(example("unified-environment/observed/ready.yaml")).unwrap();
    // A list of thousands, and more documents than a parser for untrusted files would accept.
    let copy = |number: usize| {
        state
            .replace("checkout-n8w3r", &format!("checkout-n{number}w3r"))
            .replace("name: checkout\n", &format!("name: checkout-{number}\n"))
    };
    let copies: Vec<String> = (100..200).map(copy).chain([state.clone()]).collect();
    let documents = copies.join("\n---\n");
    let all: Vec<Value> = copies
        .iter()
        .flat_map(|copy| serde_saphyr::from_multiple::<Value>(copy).unwrap())
        .collect();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": all.iter().filter(|one| !one.is_null()).collect::<Vec<_>>()});
    let folder = folder(&[("documents.yaml", &documents), ("list.json", &list.to_string())]);
    let claim = example("unified-environment/claim.yaml");
    for file in ["documents.yaml", "list.json"] {
        let run = paved(&["preview", &claim, "--observed", &within(&folder, file)]);
        assert_eq!(run.code, 0, "{file}: {}", run.err);
        assert_eq!(run.documents()[0]["metadata"]["name"], "checkout-n8w3r", "{}", run.err);
        assert!(
            run.err.contains("not part of these environments") && run.err.contains(" more\n"),
            "{}",
            run.err
        );
    }
}

#[test]
fn a_pipe_of_settings_is_read_once() {
    let folder = folder(&[("two.yaml", TWO)]);
    let two = within(&folder, "two.yaml");
    for command in [&["preview", &two][..], &["validate", &two], &["platform", "--check", &two]] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(SETTINGS.as_bytes()).unwrap();
        drop(writer);
        let pipe = format!("/dev/fd/{}", reader.as_raw_fd());
        let run = paved(&[command, &["--settings", &pipe]].concat());
        assert_eq!(run.code, 0, "{command:?}: {}", run.err);
        let run = paved_with(&[command, &["--settings", "-"]].concat(), SETTINGS);
        assert_eq!(run.code, 0, "{command:?}: {}", run.err);
    }
}

#[test]
fn foreign_files_of_a_folder_are_skipped_with_a_note() {
    let folder = folder(&[
        ("patch.yaml", "- op: replace\n  path: /spec/replicas\n  value: 2\n"),
        ("pool.yaml", POOL),
        ("values.yaml", "image: {tag: 1.2.3}\n"),
    ]);
    for command in ["preview", "validate"] {
        let run = paved(&[command, &within(&folder, "")]);
        assert_eq!(run.code, 0, "{command}: {}", run.err);
        for file in [
            "patch.yaml: skipped, not a Paved Road kind: ",
            "values.yaml: skipped, not a Paved Road kind: a document without kind",
        ] {
            assert!(run.err.contains(file), "{command}: {file}: {}", run.err);
        }
    }
    // A broken file may contain a claim, so it is an error, but the other files are shown.
    std::fs::write(within(&folder, "broken.yaml"), "a: [1,\n").unwrap();
    let run = paved(&["preview", &within(&folder, "")]);
    assert_eq!((run.code, run.documents().is_empty()), (1, false), "{}", run.err);
    assert!(run.err.contains("broken.yaml is not valid YAML"), "{}", run.err);
}

#[test]
fn json_documents_in_a_row_and_typed_lists_are_read() {
    for (file, count) in [("json-stream.json", 2), ("typed-list.yaml", 1)] {
        let run = paved(&["preview", &input(file)]);
        assert_eq!(run.code, 0, "{file}: {}", run.err);
        let pools =
            run.documents().iter().filter(|document| document["kind"] == "XStockPool").count();
        assert_eq!(pools, count, "{file}");
        let run = paved(&["validate", &input(file)]);
        assert_eq!((run.code, run.out.lines().count()), (0, count), "{file}: {}", run.err);
    }
}

#[test]
fn another_encoding_is_named() {
    let bytes = std::fs::read(input("utf16.yaml")).unwrap();
    let unmarked = bytes[2..].to_vec();
    for (run, file, name) in [
        (paved(&["validate", &input("utf16.yaml")]), "utf16.yaml", "UTF-16"),
        (paved_with(&["preview", "-"], bytes), "standard input", "UTF-16"),
        (paved_with(&["validate", "-"], unmarked), "standard input", "UTF-16LE"),
    ] {
        assert_eq!(run.code, 1, "{}", run.err);
        let told = format!("{file} is {name}, not UTF-8. Convert it with iconv -f {name} -t UTF-8");
        assert!(run.err.contains(&told), "{told}: {}", run.err);
    }
    let latin = [POOL.as_bytes(), b"# gr\xfc\xdfe\n"].concat();
    let run = paved_with(&["validate", "-"], latin);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(
        run.err.contains("standard input is not UTF-8. Save it as UTF-8 in an editor"),
        "{}",
        run.err
    );
}

#[test]
fn quotes_of_a_flag_are_yaml() {
    let given = ["image=a", "database.size=small", "appName=shop"];
    for (set, value) in [
        (r#"backend.env.MSG="hello: world""#, "hello: world"),
        ("backend.env.MSG='it''s'", "it's"),
        ("backend.env.MSG=hello: world", "hello: world"),
        ("backend.env.MSG=0755", "0755"),
        (r#"backend.env.MSG="a\tb""#, "a\tb"),
    ] {
        let mut args = vec!["init", "EnvironmentClaim", "shop", "--set", set];
        args.extend(given.iter().flat_map(|given| ["--set", given]));
        let run = paved(&args);
        assert_eq!(run.code, 0, "{set}: {}", run.err);
        let env = &run.documents()[0]["spec"]["backend"]["env"];
        assert_eq!(env["MSG"], value, "{set}");
    }
    let run = paved(&["init", "EnvironmentClaim", "shop", "--set", r#"appName="a" b"#]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("allowed: a value in YAML"), "{}", run.err);
}

#[test]
fn contradicting_flags_are_rejected() {
    let folder = folder(&[("settings.yaml", SETTINGS), ("two.yaml", TWO)]);
    let (settings, two) = (within(&folder, "settings.yaml"), within(&folder, "two.yaml"));
    let platform = ["platform", "--settings", &settings];
    for (args, told) in [
        (
            &["init", "gpu-workspace", "--flavour", "namespaced", "--group", "platform.acme.io"][..],
            "--flavour claims",
        ),
        (&["init", "gpu-workspace", "--group", "platform.m.acme.io"], "--flavour namespaced"),
        (
            &["init", "GpuDevWorkspaceClaim", "--flavour", "namespaced"],
            "GpuDevWorkspaceClaim belongs to the other API. Use GpuDevWorkspace",
        ),
        (
            &[&platform[..], &["--flavour", "namespaced", "--group", "platform.acme.io"]].concat(),
            "--flavour claims",
        ),
        (&[&platform[..], &["--function", "Bad Name"]].concat(), "a name with lowercase letters"),
        (
            &[&platform[..], &["--check", &two, "--flavour", "namespaced"]].concat(),
            "cannot be used with",
        ),
    ] {
        let run = paved(args);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(told), "{args:?}: {}", run.err);
    }
}
