//! Tests the selection of the cluster, the list of its kinds, and the confirmation of deletions, as
//! a user at a terminal sees them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use support::kubernetes::{Cluster, ready};
use support::{Run, paved_typed};
use tokio::process::Command;
use tokio::time::timeout;

const PAVED: &str = env!("CARGO_BIN_EXE_paved");

const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";

fn pool() -> Value {
    ready("StockPool", json!({"replicas": 1}), json!({}))
}

/// Runs the program with an empty environment.
async fn run(program: &Path, args: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", "/nowhere").envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap().try_into().unwrap();
    Run { code, out: text(output.stdout), err: text(output.stderr) }
}

async fn paved(args: &[&str], kubeconfig: &Path) -> Run {
    run(Path::new(PAVED), args, &[("KUBECONFIG", kubeconfig.to_str().unwrap())]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_lists_served_kinds_and_their_compositions() {
    let composition = |name: &str, labels: Value, group: &str, kind: &str| {
        json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": name, "labels": labels},
            "spec": {"compositeTypeRef": {"apiVersion": format!("{group}/v1alpha1"), "kind": kind}}})
    };
    let compositions = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionList", "metadata": {},
    "items": [
        composition("ours", json!({"provider": "kubernetes", "pkg.crossplane.io/x": "y"}), "platform.acme.io", "XStockPool"),
        composition("large", json!({}), "platform.acme.io", "XStockPool"),
        composition("another-group", json!({}), "platform.example.org", "XStockPool"),
        composition("another-kind", json!({}), "platform.acme.io", "XEnvironment"),
    ]});
    let cluster = Cluster::with(pool(), &[(COMPOSITIONS, compositions)]).await;
    let told = paved(&["kinds"], &cluster.kubeconfig()).await;
    let api = function_paved_road::apis::find("StockPool").unwrap();
    let expected = format!(
        "StockPool  platform.acme.io/v1alpha1\n  {}\n  compositionRef: ours (provider=kubernetes)\n  compositionRef: large\n",
        api.info().summary
    );
    assert_eq!((told.code, told.out, told.err), (0, expected, String::new()));

    let denied = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "compositions is forbidden: User \"ada\" cannot list resource \"compositions\" at the cluster scope"});
    let cluster = Cluster::with(pool(), &[(COMPOSITIONS, denied)]).await;
    let told = paved(&["kinds"], &cluster.kubeconfig()).await;
    assert!(
        told.code == 0
            && told.out.starts_with("StockPool  ")
            && !told.out.contains("compositionRef")
    );
    assert_eq!(told.err, "note: you may not list Compositions, so paved does not show them\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_cluster_is_retried_and_broken_cluster_is_reported() {
    let failure = |code: u16| json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "starting"});
    let none = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionList", "metadata": {}, "items": []});
    let in_turn = json!([failure(503), failure(503), none, failure(500)]);
    let cluster = Cluster::with(pool(), &[(COMPOSITIONS, in_turn)]).await;
    let told = paved(&["kinds"], &cluster.kubeconfig()).await;
    assert_eq!(told.code, 0, "{}", told.err);
    let asked = cluster.asked();
    assert_eq!(asked.iter().filter(|asked| asked.contains(COMPOSITIONS)).count(), 3);
    let told = paved(&["kinds"], &cluster.kubeconfig()).await;
    assert!(
        told.code == 6 && told.err.contains("could not list Compositions: 500 starting"),
        "{}",
        told.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_token_is_reported_in_one_line() {
    let unknown = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401, "reason": "Unauthorized",
        "message": "Unauthorized"});
    let all = "/apis/platform.acme.io/v1alpha1/namespaces/team/stockpools";
    let one = format!("{all}/shop");
    for path in ["/apis", all, &one] {
        let cluster = Cluster::with(pool(), &[(path, unknown.clone())]).await;
        let args = if path == one { ["wait", "shop"] } else { ["list", "-owide"] };
        let told = paved(&args, &cluster.kubeconfig()).await;
        assert_eq!(
            (told.code, told.out.as_str(), told.err.lines().count()),
            (6, "", 1),
            "{path}: {}",
            told.err
        );
        for words in ["rejects your credentials", "token has expired, and log in again"] {
            assert!(told.err.contains(words), "{path}: {}", told.err);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn context_selects_the_cluster() {
    let mine = Cluster::with(pool(), &[]).await;
    let theirs = Cluster::with(ready("GpuDevWorkspaceClaim", json!({}), json!({})), &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let read = |cluster: &Cluster| -> Value {
        serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap()
    };
    let mut both = read(&mine);
    let other: Value =
        serde_json::from_str(&read(&theirs).to_string().replace("\"c\"", "\"theirs\"")).unwrap();
    for list in ["clusters", "users", "contexts"] {
        both[list].as_array_mut().unwrap().push(other[list][0].clone());
    }
    let file = folder.path().join("config");
    fs::write(&file, both.to_string()).unwrap();
    for (args, kind) in [
        (&["list", "-o", "name"][..], "stockpool.platform.acme.io/shop\n"),
        (
            &["list", "-o", "name", "--context", "theirs"],
            "gpudevworkspaceclaim.platform.acme.io/shop\n",
        ),
        (&["list", "-o", "name", "--context", "c"], "stockpool.platform.acme.io/shop\n"),
    ] {
        let told = paved(args, &file).await;
        assert_eq!((told.code, told.out.as_str()), (0, kind), "{args:?}: {}", told.err);
    }
    let told = paved(&["list", "--context", "their"], &file).await;
    assert_eq!((told.code, told.out.as_str()), (1, ""));
    for word in ["--context", "their", "did you mean theirs?"] {
        assert!(told.err.contains(word), "{word}: {}", told.err);
    }
    // Several kubeconfigs are combined.
    let list =
        format!("{}:/no/such/file:{}", mine.kubeconfig().display(), theirs.kubeconfig().display());
    let told = run(Path::new(PAVED), &["list", "-o", "name"], &[("KUBECONFIG", &list)]).await;
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, "stockpool.platform.acme.io/shop\n"),
        "{}",
        told.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_without_a_service_account_gets_an_error() {
    let variables = [("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", "1")];
    let told = run(Path::new(PAVED), &["list"], &variables).await;
    assert_eq!((told.code, told.err.lines().count()), (6, 1), "{}", told.err);
    assert!(
        told.err.contains("no kubeconfig, and this pod has no service account"),
        "{}",
        told.err
    );
    // A named path that exists is not skipped, although it is a folder.
    let folder = tempfile::tempdir().unwrap();
    let named = [&variables[..], &[("KUBECONFIG", folder.path().to_str().unwrap())]].concat();
    let told = run(Path::new(PAVED), &["list"], &named).await;
    assert_eq!(told.code, 6, "{}", told.err);
    assert!(told.err.contains(folder.path().to_str().unwrap()), "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn interactive_plugin_is_read_without_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "IfAvailable",
        "args": ["-c", "echo first >&2; echo log in first >&2; exit 1"]});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "c", "user": {"exec": exec}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    let path = folder.path().join("config");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let variables = [("KUBECONFIG", path.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
    let told = run(Path::new(PAVED), &["list"], &variables).await;
    assert_eq!((told.code, told.err.lines().count()), (6, 1), "{}", told.err);
    assert!(told.err.contains("failed: log in first; check "), "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_plugin_is_the_same_program() {
    let cluster = Cluster::with(pool(), &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-paved");
    symlink(PAVED, &plugin).unwrap();
    let kubeconfig = cluster.kubeconfig();
    let variables = [("KUBECONFIG", kubeconfig.to_str().unwrap())];
    let told = run(&plugin, &["list", "-o", "name"], &variables).await;
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, "stockpool.platform.acme.io/shop\n"),
        "{}",
        told.err
    );
    for (program, usage) in [(plugin.as_path(), "kubectl paved"), (Path::new(PAVED), "paved")] {
        let help = run(program, &["--help"], &[]).await;
        assert!(help.out.contains(&format!("Usage: {usage} <COMMAND>")), "{}", help.out);
        let help = run(program, &["wait", "--help"], &[]).await;
        assert!(help.out.contains(&format!("Usage: {usage} wait [OPTIONS]")), "{}", help.out);
        let wrong = run(program, &["wait"], &[]).await;
        assert!(
            wrong.code == 1 && wrong.err.contains(&format!("Usage: {usage} wait")),
            "{}",
            wrong.err
        );
    }
}

/// Deletes the environment while a user types the text at a terminal. `None` means no terminal.
async fn delete(cluster: &Cluster, flags: &[&str], typed: Option<&'static str>) -> Run {
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let args = ["delete", "shop", "--kubeconfig", kubeconfig.as_str()];
    paved_typed(&[&args[..], flags].concat(), typed).await
}

#[tokio::test(flavor = "multi_thread")]
async fn unreported_part_does_not_delay_the_deletion() {
    let part = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a"});
    let pool = ready("StockPool", json!({"resourceRefs": [part]}), json!({}));
    let served = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
        {"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ["get"]}]});
    let others = [
        ("/api/v1", served),
        ("/api/v1/namespaces/team/configmaps/a", Value::Null),
        ("DELETE /apis/platform.acme.io/v1alpha1/namespaces/team/stockpools/shop", pool.clone()),
    ];
    for (others, flag, code, words) in [
        (&others[..2], "1m", 0, "StockPool team/shop is deleted after"),
        (&others, "2s", 5, "timed out: still not deleted after 2s: StockPool team/shop"),
    ] {
        let cluster = Cluster::with(pool.clone(), others).await;
        let args = ["delete", "shop", "--yes", "--wait", "--timeout", flag];
        let told =
            timeout(Duration::from_secs(20), paved(&args, &cluster.kubeconfig())).await.unwrap();
        assert_eq!(told.code, code, "{}", told.told());
        assert!(told.told().contains(words), "{}", told.told());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_environment_is_named() {
    let mut other = pool();
    other["metadata"]["name"] = "other".into();
    let path = "/apis/platform.acme.io/v1alpha1/namespaces/team/stockpools/other";
    let denied = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "stockpools \"other\" is forbidden: User \"ada\" cannot delete resource \"stockpools\""});
    let cluster =
        Cluster::with(pool(), &[(path, other), (&format!("DELETE {path}"), denied)]).await;
    let told = paved(&["delete", "shop", "other", "--yes"], &cluster.kubeconfig()).await;
    assert_eq!(
        (told.code, told.out.as_str()),
        (6, "StockPool team/shop is being deleted\n"),
        "{}",
        told.err
    );
    assert!(told.err.starts_with("note: not deleted: StockPool team/other\n"), "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_environment_can_count_as_deleted() {
    let cluster = Cluster::with(pool(), &[]).await;
    let kubeconfig = cluster.kubeconfig();
    let absent = ["delete", "none", "shop", "--yes"];
    let told = paved(&absent, &kubeconfig).await;
    assert!(told.code == 1 && told.err.contains("no environment none "), "{}", told.err);
    assert!(cluster.has_it(), "one name does not exist");
    for (others, words) in [
        (&[][..], &["StockPool team/shop is being deleted"][..]),
        (&["a", "b", "c", "d", "e", "f", "g", "h"], &["no environment a ", "no environment h "]),
    ] {
        let told =
            paved(&[&absent[..], &["--ignore-not-found"], others].concat(), &kubeconfig).await;
        assert_eq!(told.code, 0, "{}", told.err);
        for word in [&["no environment none "], words].concat() {
            assert!(told.out.contains(word), "{word}: {}", told.out);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_on_a_terminal_asks_first() {
    let part = json!({"slot": "deployment", "kind": "Deployment", "ready": true, "since": "2026-01-01T10:00:00Z"});
    let cluster =
        Cluster::with(ready("StockPool", json!({}), json!({"resources": [part]})), &[]).await;
    // Only a clear yes confirms. The end of the input counts as no.
    for typed in ["n\n", "\n", "", "yess\n", "no\n"] {
        let told = delete(&cluster, &[], Some(typed)).await;
        assert_eq!((told.code, told.out.as_str()), (1, ""), "{typed:?}: {}", told.err);
        let plan = "StockPool team/shop\n  The environment's resources are deleted. Its template lists the kept resources.\n";
        assert!(told.err.contains(&format!("{plan}Delete? [y/N] ")), "{}", told.err);
        assert!(told.err.ends_with("Nothing was deleted\n"), "{}", told.err);
        assert_eq!(told.err.contains("Use --yes"), typed.is_empty(), "{}", told.err);
        assert!(cluster.has_it(), "{typed:?}");
    }
    for (flags, typed, asks) in [
        (&[][..], Some("y\n"), true),
        (&[], Some(" YES \n"), true),
        (&["--yes"], Some("n\n"), false),
        (&["--yes"], None, false),
    ] {
        cluster.comes_back();
        let told = delete(&cluster, flags, typed).await;
        assert_eq!((told.code, told.err.contains("Delete?")), (0, asks), "{}", told.err);
        assert!(
            told.out.contains("StockPool team/shop is being deleted") && !cluster.has_it(),
            "{}",
            told.out
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_without_a_terminal_needs_yes() {
    let cluster = Cluster::with(pool(), &[]).await;
    let kubeconfig = cluster.kubeconfig();
    for flags in [&[][..], &["--wait"], &["--ignore-not-found"], &["--wait", "--timeout", "1s"]] {
        let outcome = delete(&cluster, flags, None).await;
        assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "{flags:?}: {}", outcome.err);
        assert!(outcome.err.starts_with("StockPool team/shop\n"), "{}", outcome.err);
        let words = "no terminal to ask for confirmation. Use --yes to delete without a question. \
                     Nothing was deleted\n";
        assert!(
            outcome.err.ends_with(words) && !outcome.err.contains("Delete?"),
            "{}",
            outcome.err
        );
    }
    // The program itself, as scripts, cron jobs and xargs run it.
    for (script, ci) in [
        ("$PAVED delete shop </dev/null", ""),
        ("echo y | $PAVED delete shop", ""),
        ("echo shop | xargs $PAVED delete", ""),
        ("$PAVED delete shop </dev/null", "true"),
        ("echo y | $PAVED delete shop", "1"),
        ("$PAVED delete shop <&-", ""),
    ] {
        let script = script.replace("$PAVED", PAVED);
        let variables = [("KUBECONFIG", kubeconfig.to_str().unwrap()), ("CI", ci)];
        let outcome = run(Path::new("bash"), &["-c", &script], &variables).await;
        assert!(outcome.code != 0 && outcome.out.is_empty(), "{script}: {}", outcome.told());
        assert!(
            outcome.err.contains("Use --yes to delete without"),
            "{script}: {}",
            outcome.told()
        );
    }
    let deletions: Vec<_> =
        cluster.asked().into_iter().filter(|asked| asked.starts_with("DELETE")).collect();
    assert!(deletions.is_empty() && cluster.has_it(), "{deletions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_lists_deleted_and_kept_resources() {
    let plan = json!({
        "deletes": [
            {"slot": "database", "kind": "Instance", "name": "shop-db", "hasData": true},
            {"slot": "role", "kind": "Role", "hasData": false},
        ],
        "keeps": [
            {"slot": "bucket", "kind": "Bucket", "name": "shop-files", "until": "deleted by hand"},
            {"slot": "database", "kind": "Snapshot", "name": "shop-db-final", "until": "deleted by hand"},
        ],
    });
    let of = |plan: Value| ready("StockPool", json!({}), json!({"onDeletion": plan}));
    let kept = "billed while it exists: bucket (Bucket shop-files), until deleted by hand, \
                left by database (Snapshot shop-db-final), until deleted by hand\n";
    let cluster = Cluster::with(of(plan), &[]).await;
    let outcome = delete(&cluster, &[], Some("y\n")).await;
    let asked = format!(
        "StockPool team/shop\n  Deletes, with all data: database (Instance shop-db)\n  \
         Deletes 1 other resource.\n  Kept, and {kept}Delete? [y/N] "
    );
    assert_eq!((outcome.code, outcome.err.as_str()), (0, asked.as_str()));
    assert_eq!(
        outcome.out,
        format!("StockPool team/shop is being deleted\nStockPool team/shop: kept, and {kept}")
    );
    cluster.comes_back();
    let outcome = paved(&["delete", "shop", "--yes", "--wait"], &cluster.kubeconfig()).await;
    assert!(
        outcome.out.ends_with(&format!("StockPool team/shop: kept, and {kept}")),
        "{}",
        outcome.told()
    );

    let everything = json!({"deletes": [{"slot": "deployment", "kind": "Deployment", "hasData": false}], "keeps": []});
    let cluster = Cluster::with(of(everything), &[]).await;
    let outcome = delete(&cluster, &[], Some("y\n")).await;
    assert!(
        outcome.err.contains("StockPool team/shop\n  Deletes 1 resource.\nDelete? "),
        "{}",
        outcome.err
    );
    assert_eq!(outcome.out, "StockPool team/shop is being deleted\n");
}
