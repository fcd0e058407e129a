//! `paved init` writes a valid claim, which also shows the optional fields.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::VecDeque;
use std::ffi::OsString;

use anstream::StripStream;
use paved::{Console, Stream};
use support::{Run, assert_golden, folder, paved, paved_with, within};

/// Every kind for users, with its required fields.
const KINDS: [(&str, &str, &[&str]); 10] = [
    ("GpuDevWorkspaceClaim", "claims", &["owner=ada"]),
    (
        "gpu-workspace",
        "namespaced",
        &["spec.parameters.owner=ada", "diskGB=200", "sshPublicKeys=[]"],
    ),
    ("ApplicationEnvironment", "claims", &["nodeSize=small"]),
    ("application-environment", "namespaced", &["parameters.nodeSize=large"]),
    (
        "EnvironmentClaim",
        "claims",
        &["image=ghcr.io/acme/shop:1", "database.size=small", "appName=shop"],
    ),
    (
        "UnifiedEnvironment",
        "namespaced",
        &["image=a", "database.size=small", "appName=shop", "backend.env.LOG=1"],
    ),
    ("stockpools", "claims", &["specName=a100", "replicas=2"]),
    ("pool", "namespaced", &["specName=4.8", "replicas=0"]),
    ("environment", "claims", &[]),
    ("virtual-environment", "namespaced", &["gitops.repoURL=https://git.example.org/a.git"]),
];

#[test]
fn written_claim_with_required_fields_is_valid() {
    for (kind, flavour, set) in KINDS {
        let mut args = vec!["init", kind, "ada", "--flavour", flavour, "-n", "team"];
        args.extend(set.iter().flat_map(|set| ["--set", set]));
        let run = paved(&args);
        let is_workspace = kind.to_lowercase().contains("gpu");
        assert_eq!(
            (run.code, run.err.lines().count()),
            (0, if is_workspace { 3 } else { 0 }),
            "{kind}: {}",
            run.err
        );
        assert_eq!(run.err.contains("note: list price: "), is_workspace, "{kind}: {}", run.err);
        assert_eq!(
            run.err.contains("note: No SSH key: you will connect by Session Manager")
                && run.err.contains("note: SSH is closed"),
            is_workspace,
            "{kind} {flavour}: {}",
            run.err
        );
        let valid = paved_with(&["validate", "-"], &run.out);
        assert_eq!(valid.code, 0, "{kind}: {}\n{}", valid.err, run.out);
        assert!(
            run.out.lines().all(|line| line.chars().count() <= 110 || !line.contains("# ")),
            "{}",
            run.out
        );
    }
}

/// A line of `ssh-keygen -t ed25519`.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada@acme.io";

#[test]
fn ssh_keys_come_from_files() {
    let folder = folder(&[]);
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let key = write("id.pub", &format!("{KEY}\n"));
    let keys = write("keys", &format!("# work\n{KEY} 1\n\n{KEY} 2\n"));
    let private = write("id", "-----BEGIN OPENSSH PRIVATE KEY-----\nxx\n");
    let (empty, wrong) = (write("empty", "\n"), write("wrong", "ssh-ed25519\n"));
    let init = |api: &str, files: &[&str]| {
        let mut args = vec!["init", api, "ada"];
        if api == "gpu-workspace" {
            args.extend(["--set", "owner=ada"]);
        }
        args.extend(files.iter().flat_map(|file| ["--ssh-key", file]));
        paved(&args)
    };
    let run = init("gpu-workspace", &[&key, &keys]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out.matches("ssh-ed25519 AAAA").count(), 3, "{}", run.out);
    assert!(!run.err.contains("No SSH key"), "{}", run.err);
    for (api, file, expected) in [
        ("gpu-workspace", "none.pub", "--ssh-key none.pub: No such file"),
        ("gpu-workspace", private.as_str(), "found a private key; allowed: a public key"),
        ("gpu-workspace", empty.as_str(), "found no key"),
        ("gpu-workspace", wrong.as_str(), "sshPublicKeys"),
        ("stock-pool", key.as_str(), "--ssh-key: stock-pool has no SSH keys"),
    ] {
        let run = init(api, &[file]);
        assert_ne!(run.code, 0, "{file}: {}", run.out);
        assert!(run.err.contains(expected), "{file}: {}", run.err);
        assert_eq!(run.out, "", "{file}");
    }
}

#[test]
fn uncommented_field_with_a_default_is_valid() {
    for (kind, flavour, set) in KINDS {
        let mut args = vec!["init", kind, "ada", "--flavour", flavour];
        args.extend(set.iter().flat_map(|set| ["--set", set]));
        let text = paved(&args).out;
        let single = |line: &str| {
            let field = line
                .trim_start()
                .strip_prefix('#')
                .filter(|field| !field.starts_with([' ', '#']))?;
            let (_, value) = field.split_once(": ")?;
            let indent = &line[..line.len() - line.trim_start().len()];
            (value != "{}").then(|| format!("{indent}{field}"))
        };
        for line in text.lines() {
            let Some(field) = single(line) else { continue };
            let valid = paved_with(&["validate", "-"], text.replace(line, &field));
            assert_eq!(valid.code, 0, "{kind}: {field}: {}", valid.err);
        }
    }
}

#[test]
fn a_claim_reads_well() {
    assert_golden(
        "init-gpu-workspace",
        &paved(&["init", "gpu-workspace", "ada", "--set", "owner=ada@acme.io"]).told(),
    );
    assert_golden(
        "init-virtual-environment",
        &paved(&[
            "init",
            "Environment",
            "preview",
            "--flavour",
            "namespaced",
            "--group",
            "platform.example.org",
        ])
        .told(),
    );
}

#[test]
fn missing_fields_are_listed_without_a_terminal() {
    assert_golden("init-missing", &paved(&["init", "EnvironmentClaim"]).told());
}

#[test]
fn required_fields_on_a_terminal_are_asked_for() {
    let run = typed(
        &["init", "EnvironmentClaim"],
        &["shop", "not an image", "ghcr.io/acme/shop:1", "shop", "", ""],
    );
    assert_golden("init-asked", &run.told());
    let run = typed(&["init", "stockpool", "x"], &["3"]);
    assert_eq!(run.code, 1, "{}", run.told());
}

#[test]
fn end_of_the_input_writes_no_file() {
    let folder = folder(&[]);
    let file = within(&folder, "claim.yaml");
    for lines in [&[][..], &["shop"]] {
        let run = typed(&["init", "environment", "-f", &file], lines);
        assert_eq!(run.code, 1, "{}", run.told());
        assert!(!std::path::Path::new(&file).exists());
    }
}

#[test]
fn a_file_is_never_replaced_unasked() {
    let folder = folder(&[("claim.yaml", "mine")]);
    let file = within(&folder, "claim.yaml");
    let args = ["init", "gpu-workspace", "ada", "--set", "owner=ada", "-f", &file];
    let run = paved(&args);
    assert_eq!(run.code, 1, "{}", run.told());
    assert!(run.err.contains("already exists. Use --force to replace it"), "{}", run.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(paved(&[&args[..], &["--force"]].concat()).code, 0);
    assert_eq!(paved(&["validate", &file]).code, 0);
    let new = within(&folder, "new.yaml");
    assert_eq!(paved(&["init", "gpu-workspace", "ada", "--set", "owner=ada", "-f", &new]).code, 0);
    assert_eq!(paved(&["validate", &new]).code, 0);
}

#[test]
fn invalid_arguments_are_reported() {
    for (args, code, told) in [
        (&["init"][..], 1, "KIND"),
        (&["init", "GpuWorkspace", "a"], 1, "did you mean"),
        (&["init", "gpu-workspace", "Ada", "--set", "owner=a"], 1, "metadata.name: found \"Ada\""),
        (&["init", "gpu-workspace", "a", "--set", "owner"], 1, "allowed: PATH=VALUE"),
        (&["init", "gpu-workspace", "a", "--set", "ownr=a"], 1, "did you mean"),
        (
            &["init", "gpu-workspace", "a", "--set", "diskGB=1"],
            1,
            "spec.parameters.diskGB: found 1; allowed: 75 to 65536",
        ),
        (
            &["init", "gpu-workspace", "a", "--set", "diskGB=[", "--set", "owner=a"],
            1,
            "allowed: a value in YAML",
        ),
        (
            &["init", "environment", "a", "--set", "name=x"],
            1,
            "spec.parameters.app.chart.repository",
        ),
        (
            &["init", "gpu-workspace", "a", "--set", "owner=a", "--set", "instanceType=g4dn.huge"],
            3,
            "instanceType: found",
        ),
        (
            &["init", "environment", "a", "--set", "type=gke", "--set", "expose=loadBalancer"],
            2,
            "spec.parameters",
        ),
        (
            &["init", "gpu-workspace", "a", "--set", "owner=a", "--group", "NO"],
            1,
            "allowed: a lowercase domain",
        ),
        (
            &["init", "gpu-workspace", "a", "--set", "owner=a", "--flavour", "x"],
            1,
            "allowed: claims, namespaced",
        ),
    ] {
        let run = paved(args);
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{args:?}: {}", run.err);
        assert!(run.err.contains(told), "{args:?}: {}", run.err);
    }
}

/// Runs the command while a user types these lines at a terminal.
fn typed(args: &[&str], lines: &[&str]) -> Run {
    // With Settings, the command asks no cluster of this machine for its offer.
    let settings = "apiVersion: paved-road.fn.crossplane.io/v1beta1\nkind: Settings\n\
                    gpuWorkspace: {amis: {us-east-1: {default: ami-0a1b2c3d4e5f60718}}}\n";
    let folder = folder(&[("settings.yaml", settings)]);
    let settings = within(&folder, "settings.yaml");
    let args = [args, &["--settings", &settings]].concat();
    let mut lines: VecDeque<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut answer = || Ok(lines.pop_front().unwrap_or_default());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (mut plain, mut plain_err) = (StripStream::new(&mut out), StripStream::new(&mut err));
    let mut console = Console {
        input: &mut |_| Ok(0),
        out: Stream::new(&mut plain),
        err: Stream::new(&mut plain_err),
        terminal: None,
        answer: Some(&mut answer),
    };
    let args = std::iter::once("paved").chain(args.iter().copied()).map(OsString::from);
    let code = paved::run(args, &mut console);
    Run { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

#[test]
fn offered_value_is_chosen_by_its_number() {
    let run = typed(&["init", "environment"], &["shop", "4", "2"]);
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.out.contains("    size: medium\n"), "{}", run.out);
    assert!(
        run.err.contains("found \"4\"; allowed: 1 to 3, or small, medium, large"),
        "{}",
        run.err
    );
    let run = typed(&["init", "application-environment", "shop"], &["2"]);
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.out.contains("    nodeSize: medium\n"), "{}", run.told());
    assert!(run.err.contains("2  medium  0.034  e2-medium for each node"), "{}", run.err);
    // A typo is answered with the offer and the nearest value, and the question comes again.
    let run = typed(&["init", "gpu-workspace", "a"], &["ada", "g5.2xlarg", "7"]);
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.err.contains("found \"g5.2xlarg\"; allowed: 1 to 20, or g4dn, "), "{}", run.err);
    assert!(run.err.contains("(nearest: g5.2xlarge)"), "{}", run.err);
    assert!(run.out.contains("    instanceType: g5.2xlarge\n"), "{}", run.out);
}
