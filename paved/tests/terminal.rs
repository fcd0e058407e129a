//! The view of a user at 80 columns: the output of the commands for each example state, without a
//! broken word.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;

use anstream::StripStream;
use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use function_paved_road::apis::{APIS, Info};
use jiff::{SignedDuration, Timestamp};
use k8s_schema::Schemas;
use paved::{Console, Stream, Terminal};
use serde_json::{Value, json};
use support::{Run, assert_golden, example, folder, within};
use tempfile::TempDir;

const STATES: [&str; 3] = ["ready", "half-way", "failing"];

/// A claim in one of the example states, in the namespace `team`.
fn environment(info: &Info, state: &str) -> Value {
    let claim = example(&format!("{}/claim.yaml", info.name));
    let observed = example(&format!("{}/observed/{state}.yaml", info.name));
    let run = support::paved(&["preview", &claim, "--observed", &observed, "-o", "json"]);
    assert_eq!(run.code, 0, "{}", run.told());
    let rendered: Value = serde_json::from_str(&run.out).unwrap();
    let is_composite = |one: &&Value| one["kind"] == info.composite.kind;
    let composite = rendered["items"].as_array().unwrap().iter().find(is_composite).unwrap();
    let text = std::fs::read_to_string(claim).unwrap();
    let mut claim: Value = serde_saphyr::from_str(&text).unwrap();
    claim["metadata"]["namespace"] = json!("team");
    claim["metadata"]["uid"] = json!("u");
    claim["status"] = composite["status"].clone();
    // Ages are whole days.
    let days = |days: i64| {
        let at =
            Timestamp::now() - SignedDuration::from_hours(24 * days) - SignedDuration::from_mins(5);
        json!(Timestamp::from_second(at.as_second()).unwrap().to_string())
    };
    claim["metadata"]["creationTimestamp"] = days(3);
    for part in claim["status"]["resources"].as_array_mut().unwrap() {
        part["since"] = days(2);
    }
    claim["status"]["lifecycle"] = json!({});
    let conditions = claim["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|one| one["type"] != "Synced");
    conditions.push(json!({"type": "Synced", "status": "True", "reason": "ReconcileSuccess"}));
    claim
}

/// A cluster with one environment.
struct World {
    folder: TempDir,
    _server: Server,
}

impl World {
    async fn with(info: &Info, object: &Value) -> Self {
        let names = json!({"kind": info.claim.kind, "plural": info.claim.plural,
            "categories": ["claim", "paved"]});
        let kind = Kind::from_names("platform.acme.io", "v1alpha1", &names, true);
        let kinds = Kinds::new([kind], Schemas::new([].iter()).unwrap(), Vec::new());
        let cluster = Arc::new(Cluster::new(kinds, Access::open(User::new("ada", &[]))));
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let key = cluster.kinds.for_object(object).unwrap().key("team", name);
        cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone()));
        let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
        Self { folder: folder(&[("kubeconfig", kubeconfig.as_str())]), _server: server }
    }

    /// Runs `paved` on a terminal with this number of columns. The user types `n`.
    async fn at(&self, columns: usize, args: &[&str]) -> Run {
        let kubeconfig = within(&self.folder, "kubeconfig");
        let args: Vec<OsString> = ["paved"]
            .iter()
            .chain(args)
            .chain(&["--kubeconfig", &kubeconfig])
            .map(OsString::from)
            .collect();
        tokio::task::spawn_blocking(move || run(args, columns)).await.unwrap()
    }
}

fn run(args: Vec<OsString>, columns: usize) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (mut plain, mut plain_err) = (StripStream::new(&mut out), StripStream::new(&mut err));
    let room = move || columns;
    let size = move || (24, columns);
    let mut controls = std::io::sink();
    let mut console = Console {
        input: &mut |_| Ok(0),
        out: Stream::new(&mut plain).with_room(Some(&room)),
        err: Stream::new(&mut plain_err).with_room(Some(&room)),
        terminal: Some(Terminal { size: &size, controls: &mut controls }),
        answer: Some(&mut || Ok("n\n".to_owned())),
    };
    let code = paved::run(args, &mut console);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    // A terminal shows the typed text.
    let err = text(err).replace("[y/N] ", "[y/N] n\n");
    Run { code, out: text(out), err }
}

/// The commands of a user's day.
fn commands(name: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["list"],
        vec!["list", "-A", "-o", "wide"],
        vec!["status", name],
        vec!["status", name, "-o", "wide"],
        vec!["cost"],
        vec!["wait", name, "--timeout", "0"],
        vec!["wait", name, "--for=deleted", "--timeout", "0"],
        vec!["extend", name, "4h"],
        vec!["keep", name],
        vec!["stop", name],
        vec!["start", "no-such-environment"],
        vec!["delete", name],
        vec!["delete", name, "--plan"],
        vec!["kinds"],
    ]
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

/// The same without the port of the server, and without hashes of plans, which depend on it.
fn masked(text: &str) -> String {
    let ports = regex_lite::Regex::new(r"127\.0\.0\.1:\d+").unwrap();
    let hashes = regex_lite::Regex::new(r"[0-9a-f]{64}").unwrap();
    let text = ports.replace_all(text, "<server>");
    hashes.replace_all(&text, "<hash>").into_owned()
}

/// Each line fits, or has one long word. Each word is a word of a wide terminal.
fn assert_whole(narrow: &str, wide: &str) {
    let (narrow, wide) = (&masked(narrow), &masked(wide));
    let known = words(wide);
    for line in narrow.lines() {
        let is_long = console_width(line) > 80;
        let text = line.trim_start_matches(['│', ' ']);
        assert!(!is_long || !text.contains(' '), "longer than the terminal: {line:?}\n{narrow}");
    }
    let signs = ["│", "├─", "└─", "\\", "…"];
    let broken: Vec<&str> = words(narrow)
        .into_iter()
        .filter(|word| !known.contains(word) && !signs.contains(word))
        .collect();
    assert!(broken.is_empty(), "broken words: {broken:?}\n{narrow}\n{wide}");
}

fn console_width(line: &str) -> usize {
    line.chars().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_at_80_columns_has_no_broken_word() {
    for api in APIS {
        let info = api.info();
        for state in STATES {
            let object = environment(info, state);
            let name = object["metadata"]["name"].as_str().unwrap();
            let mut told = String::new();
            for command in commands(name) {
                // A command may change the environment.
                let narrow = World::with(info, &object).await.at(80, &command).await;
                let wide = World::with(info, &object).await.at(10_000, &command).await;
                assert_whole(&narrow.told(), &wide.told());
                writeln!(told, "$ paved {}\n{}", command.join(" "), narrow.told()).unwrap();
            }
            let told = masked(&told).replace(" \n", "\n");
            assert_golden(&format!("terminal-{}-{state}", info.name), &told);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_of_a_large_environment_fits_on_the_screen() {
    for api in APIS {
        for state in STATES {
            let object = environment(api.info(), state);
            let world = World::with(api.info(), &object).await;
            let name = object["metadata"]["name"].as_str().unwrap();
            let run = world.at(80, &["status", name]).await;
            assert!(run.out.lines().count() <= 24, "{}", run.out);
            let failed = object["status"]["resources"].as_array().unwrap().iter();
            for part in failed.filter(|part| part["reason"] == "Failed") {
                let slot = part["slot"].as_str().unwrap();
                assert!(run.out.contains(&format!("✗ Failed {slot} (")), "{}", run.out);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_list_is_whole_and_list_has_the_reason() {
    let api = APIS.iter().find(|api| api.info().name == "gpu-workspace").unwrap();
    let object = environment(api.info(), "failing");
    let world = World::with(api.info(), &object).await;
    let narrow = world.at(80, &["list"]).await;
    assert!(narrow.out.contains("\n  instance: "), "the reason of Failed: {}", narrow.out);
    let wide = world.at(80, &["list", "-o", "wide"]).await;
    let whole = world.at(10_000, &["list", "-o", "wide"]).await;
    assert!(!wide.out.contains('…'), "{}", wide.out);
    assert_eq!(words(&wide.out), words(&whole.out));
}

#[test]
fn help_and_errors_at_80_columns_have_no_broken_word() {
    for args in [
        &["--help"][..],
        &["apply", "--help"],
        &["delete", "--help"],
        &["status", "x", "--colour"],
        &["apply", "no-such-file.yaml"],
        &["stop", "ada", "--confirm", "abc"],
        &["aply"],
    ] {
        let at = |columns| {
            let args = ["paved"].iter().chain(args).map(OsString::from).collect();
            run(args, columns)
        };
        assert_whole(&at(80).told(), &at(10_000).told());
    }
}
