//! `paved apply` writes all documents or none, after the API server and the function have accepted
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use function_paved_road::apis::{self, Flavour};
use function_paved_road::manifests::example_composition;
use jiff::Timestamp;
use k8s_schema::Schemas;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use support::{Run, folder, within};
use tokio::process::Command;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const GROUP: &str = "platform.acme.io";
const CONFIGS: &str = "/apis/apiextensions.crossplane.io/v1beta1/environmentconfigs";
const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";

/// A cluster that makes GPU workspaces and has these objects.
fn cluster(objects: &[&Value]) -> Cluster {
    let names =
        json!({"kind": "GpuDevWorkspace", "plural": "gpudevworkspaces", "categories": ["paved"]});
    let kind = Kind::from_names(GROUP, "v1alpha1", &names, true);
    let kinds = Kinds::new([kind], Schemas::new([].iter()).unwrap(), Vec::new());
    let cluster = Cluster::new(kinds, Access::open(User::new("ada", &[])));
    for object in objects {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let key = cluster.kinds.for_object(object).unwrap().key(text("namespace"), text("name"));
        cluster.store.put(&key, Timestamp::now(), |_| Some((*object).clone()));
    }
    cluster
}

/// A cluster with these objects, whose users may not read Compositions.
fn hiding_compositions(objects: &[&Value]) -> Cluster {
    let cluster = cluster(objects);
    cluster.access.set("ada", "list", COMPOSITIONS, false);
    cluster
}

/// Runs `paved apply` on files, with more arguments. Returns the run and how many objects it wrote.
async fn apply(
    cluster: impl Into<Arc<Cluster>>,
    files: &[(&str, &Value)],
    args: &[&str],
) -> (Run, usize) {
    let cluster = cluster.into();
    let server = Server::start(Arc::clone(&cluster)).await.unwrap();
    let kubeconfig = server.kubeconfig("c", "team", &json!({})).to_string();
    let files: Vec<_> = files.iter().map(|(name, object)| (*name, object.to_string())).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let (home, folder) = (folder(&[("kubeconfig", kubeconfig.as_str())]), folder(&files));
    let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
    command.arg("apply").arg(within(&folder, "")).args(args).env_clear();
    command.env("KUBECONFIG", within(&home, "kubeconfig"));
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let run = Run {
        code: output.status.code().unwrap().try_into().unwrap(),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    let requests = cluster.requests();
    let is_write =
        |one: &&fake_kube::Request| one.method == "PATCH" && !one.query.contains("dryRun");
    (run, requests.iter().filter(is_write).count())
}

/// A workspace for `paved apply`.
fn workspace(name: &str, machine: &str, region: &str) -> Value {
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada";
    let spec = json!({"parameters":
        {"owner": "ada@acme.io", "instanceType": machine, "region": region, "sshPublicKeys": [key]}});
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace", "spec": spec,
        "metadata": {"name": name, "namespace": "team"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_spec_is_applied_only_with_no_validate() {
    let good = workspace("good", "g4dn.xlarge", "us-east-1");
    let bad = workspace("bad", "p9.enormous", "us-east-1");
    let files = [("good.yaml", &good), ("wrong.yaml", &bad)];
    let (told, written) = apply(hiding_compositions(&[]), &files, &[]).await;
    assert!(told.code == 3 && told.out.is_empty(), "{}", told.told());
    for words in [
        "wrong.yaml: GpuDevWorkspace team/bad: ",
        "spec.parameters.instanceType",
        "p9.enormous",
        "nothing is applied",
        "--no-validate",
    ] {
        assert!(told.err.contains(words), "{words}: {}", told.err);
    }
    assert_eq!(written, 0);

    let (told, written) = apply(hiding_compositions(&[]), &files, &["--no-validate"]).await;
    assert!(told.code == 0 && written == 2, "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn running_spec_is_rejected_only_for_new_faults() {
    // The Settings are unknown: the platform may well have a machine image for this region.
    let runs = workspace("ada", "g4dn.xlarge", "eu-west-1");
    let odd = workspace("ada", "p9.enormous", "eu-west-1");
    for (live, new, code) in
        [(&runs, &runs, 0), (&runs, &odd, 3), (&odd, &odd, 0), (&odd, &runs, 0)]
    {
        let (told, written) =
            apply(hiding_compositions(&[live]), &[("claim.yaml", new)], &[]).await;
        assert_eq!((told.code, written), (code, usize::from(code == 0)), "{}", told.told());
        let blamed = told.err.contains("eu-west-1")
            || told.err.contains("not checked against the composition:");
        assert!(!blamed && told.err.contains("you may not read Compositions"), "{}", told.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spec_of_another_function_is_not_checked() {
    let odd = workspace("ada", "p9.enormous", "us-east-1");
    let step = json!({"step": "render", "functionRef": {"name": "function-go-templating"},
        "input": {"apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate"}});
    let theirs = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "theirs"}, "spec": {"pipeline": [step], "compositeTypeRef":
            {"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace"}}});
    let (told, written) = apply(cluster(&[&theirs]), &[("claim.yaml", &odd)], &[]).await;
    assert!(told.code == 0 && written == 1, "{}", told.told());
    assert!(told.err.contains("Composition theirs uses another function"), "{}", told.err);
}

/// A Composition for workspaces, and Settings with a budget of the namespace.
fn offer(budget: &str) -> [Value; 2] {
    let api = apis::find("GpuDevWorkspace").unwrap();
    let mut composition = example_composition(api, Flavour::Namespaced, GROUP);
    composition["spec"]["pipeline"][0]["input"]["settingsFrom"] = json!({"name": "paved-road"});
    let settings = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig", "metadata": {"name": "paved-road"},
        "data": {"budget": {"defaultHourlyUSD": "100", "byNamespace": {"team": budget}}}});
    [composition, settings]
}

/// A workspace of bob that runs at this price.
fn running(name: &str, machine: &str, hourly: &str) -> Value {
    let mut object = workspace(name, machine, "us-east-1");
    object["spec"]["parameters"]["owner"] = json!("bob");
    object["status"] = json!({"phase": "Ready", "power": "Running", "estimatedHourlyUSD": hourly});
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn price_over_the_budget_is_not_applied() {
    let [composition, settings] = offer("2");
    let objects = [&composition, &settings, &running("big", "g4dn.4xlarge", "1.5")];
    let new = workspace("new", "g4dn.xlarge", "us-east-1");
    for args in [&[][..], &["--dry-run=server"], &["--diff"]] {
        let (told, written) = apply(cluster(&objects), &[("new.yaml", &new)], args).await;
        assert_eq!((told.code, written), (2, 0), "{args:?} {}", told.told());
        for words in [
            "new.yaml: GpuDevWorkspace team/new is rejected",
            "metadata.namespace: found 2.042 USD per hour with 0.542 for this environment; \
             allowed: 2.000, the budget of namespace team. 0.500 is left",
            "The highest prices: GpuDevWorkspace big of bob (1.500)",
        ] {
            assert!(told.err.contains(words), "{words}: {}", told.err);
        }
    }
    let [_, larger] = offer("2.042");
    let objects = [&composition, &larger, &running("big", "g4dn.4xlarge", "1.5")];
    let (told, written) = apply(cluster(&objects), &[("new.yaml", &new)], &[]).await;
    assert_eq!((told.code, written), (0, 1), "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejection_names_the_largest_machine_that_fits() {
    let [composition, settings] = offer("0.8");
    let new = workspace("new", "g4dn.4xlarge", "us-east-1");
    let (told, _) = apply(cluster(&[&composition, &settings]), &[("new.yaml", &new)], &[]).await;
    let words = "0.800 is left, which is enough for the machine type g4dn.2xlarge\n";
    assert!(told.code == 2 && told.err.contains(words), "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_count_together() {
    let [composition, settings] = offer("1");
    let [one, two] = ["one", "two"].map(|name| workspace(name, "g4dn.xlarge", "us-east-1"));
    let files = [("one.yaml", &one), ("two.yaml", &two)];
    let (told, written) = apply(cluster(&[&composition, &settings]), &files, &[]).await;
    assert_eq!((told.code, written), (2, 0), "{}", told.told());
    assert!(told.err.contains("two.yaml: ") && !told.err.contains("one.yaml: "), "{}", told.err);
    assert!(told.err.contains("found 1.084 USD per hour"), "{}", told.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn change_over_the_budget_is_applied_if_it_does_not_raise_the_price() {
    let [composition, settings] = offer("0.1");
    let live = running("ada", "g4dn.2xlarge", "0.768");
    let objects = [&composition, &settings, &live];
    for (machine, code) in [("g4dn.xlarge", 0), ("g4dn.2xlarge", 0), ("g4dn.4xlarge", 2)] {
        let mut new = workspace("ada", machine, "us-east-1");
        new["spec"]["parameters"]["owner"] = json!("bob");
        let (told, written) = apply(cluster(&objects), &[("ada.yaml", &new)], &[]).await;
        let expected = (code, usize::from(code == 0));
        assert_eq!((told.code, written), expected, "{machine}: {}", told.told());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_shows_the_price() {
    let [composition, settings] = offer("2");
    let new = workspace("new", "g4dn.xlarge", "us-east-1");
    let cluster = cluster(&[&composition, &settings]);
    let (told, _) = apply(cluster, &[("new.yaml", &new)], &["--dry-run=server"]).await;
    let words = "created (server dry run)\n  price: 0.542 USD per hour, 0.011 while stopped \
                 (estimate, prices of ";
    assert!(told.code == 0 && told.out.contains(words), "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_settings_are_told_once_and_reject_nothing() {
    let [composition, settings] = offer("0.1");
    let cluster = cluster(&[&composition, &settings]);
    cluster.access.set("ada", "get", &format!("{CONFIGS}/paved-road"), false);
    let [one, two] = ["one", "two"].map(|name| workspace(name, "g4dn.xlarge", "us-east-1"));
    let (told, written) = apply(cluster, &[("one.yaml", &one), ("two.yaml", &two)], &[]).await;
    assert_eq!((told.code, written), (0, 2), "{}", told.told());
    assert_eq!(told.err.matches("the check of budgets").count(), 1, "{}", told.err);
    assert!(told.err.contains("you may not read EnvironmentConfigs"), "{}", told.err);
}

/// A cluster after these managers have written the object one after another, each with a merge
/// patch. The first one has made it.
async fn written_by(managers: &[(&str, &Value)]) -> Arc<Cluster> {
    let cluster = Arc::new(hiding_compositions(&[]));
    let server = Server::start(Arc::clone(&cluster)).await.unwrap();
    let client =
        Client::try_from(Config::new(format!("http://{}", server.address).parse().unwrap()));
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1alpha1", "GpuDevWorkspace"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.unwrap(), "team", &resource);
    for (index, (manager, object)) in managers.iter().enumerate() {
        let manager = Some((*manager).to_owned());
        if index == 0 {
            let params = PostParams { field_manager: manager, ..PostParams::default() };
            let object = serde_json::from_value((*object).clone()).unwrap();
            api.create(&params, &object).await.unwrap();
        } else {
            let params = PatchParams { field_manager: manager, ..PatchParams::default() };
            api.patch("ada", &params, &Patch::Merge(object)).await.unwrap();
        }
    }
    cluster.requests();
    cluster
}

fn stored(cluster: &Cluster) -> Value {
    let kind = cluster.kinds.for_object(&workspace("ada", "", "")).unwrap();
    Value::clone(&cluster.store.get(&kind.key("team", "ada")).unwrap())
}

/// A workspace as `kubectl apply` makes it, with fields of every place, and the same file without
/// these fields.
fn with_and_without_fields() -> [Value; 2] {
    let mut without = workspace("ada", "g4dn.xlarge", "us-east-1");
    without["spec"]["parameters"].as_object_mut().unwrap().remove("sshPublicKeys");
    let mut with = workspace("ada", "g4dn.xlarge", "us-east-1");
    with["metadata"]["labels"] = json!({"team": "vision"});
    with["metadata"]["annotations"] = json!({LAST_APPLIED: "{}", "note": "x"});
    with["spec"]["lifecycle"] = json!({"ttl": "8h", "onExpiry": "Delete"});
    with["spec"]["parameters"]["allowedCidrs"] = json!(["0.0.0.0/0"]);
    [with, without]
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_fields_follow_paved_apply() {
    let [with, without] = with_and_without_fields();
    for manager in ["kubectl-client-side-apply", "kubectl"] {
        let cluster = written_by(&[(manager, &with)]).await;
        let before = stored(&cluster);
        let dry_run = ["--dry-run=server", "--diff", "--no-validate"];
        let (told, written) = apply(Arc::clone(&cluster), &[("a.yaml", &without)], &dry_run).await;
        assert_eq!((told.code, written), (0, 0), "{}", told.told());
        assert!(told.out.contains("configured (server dry run)"), "{}", told.told());
        for line in ["-     allowedCidrs:", "-     ttl: 8h", "-     team: vision", "-     note: x"]
        {
            assert!(told.out.lines().any(|one| one.trim_end() == line), "{line}: {}", told.out);
        }
        assert_eq!(stored(&cluster), before);

        // The same file changes no field, and takes the fields over.
        let (told, _) = apply(Arc::clone(&cluster), &[("a.yaml", &with)], &["--no-validate"]).await;
        assert!(told.code == 0 && told.out.ends_with(" unchanged\n"), "{}", told.told());
        assert!(told.err.contains("paved takes over the fields of kubectl apply"), "{}", told.err);
        let (told, _) =
            apply(Arc::clone(&cluster), &[("a.yaml", &without)], &["--no-validate"]).await;
        assert!(told.code == 0 && told.out.ends_with(" configured\n"), "{}", told.told());
        let after = stored(&cluster);
        assert_eq!(after["spec"], without["spec"]);
        for place in ["labels", "annotations"] {
            let left = after["metadata"][place].as_object().map_or(0, serde_json::Map::len);
            assert_eq!(left, 0, "{after}");
        }
        // No field is left to take over.
        let (told, _) =
            apply(Arc::clone(&cluster), &[("a.yaml", &without)], &["--no-validate"]).await;
        assert!(told.out.ends_with(" unchanged\n"), "{}", told.told());
        assert!(!told.err.contains("takes over"), "{}", told.err);

        // The same without an apply of the first file.
        let cluster = written_by(&[(manager, &with)]).await;
        let (told, _) =
            apply(Arc::clone(&cluster), &[("a.yaml", &without)], &["--no-validate"]).await;
        assert!(told.code == 0 && told.out.ends_with(" configured\n"), "{}", told.told());
        assert_eq!(stored(&cluster)["spec"], without["spec"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_other_managers_stay_and_are_named() {
    let [with, without] = with_and_without_fields();
    for manager in ["kubectl-create", "kubectl-edit", "kubectl-replace", "kubectl-patch"] {
        let cluster = written_by(&[(manager, &with)]).await;
        let (told, _) =
            apply(Arc::clone(&cluster), &[("a.yaml", &without)], &["--no-validate"]).await;
        assert!(told.code == 0 && !told.out.contains("unchanged"), "{}", told.told());
        let words = format!("spec.parameters.allowedCidrs ({manager})");
        assert!(told.err.contains("keeps fields that are not in the file: "), "{}", told.err);
        assert!(told.err.contains(&words), "{}", told.err);
        assert_eq!(stored(&cluster)["spec"], with["spec"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_kubectls_value_is_a_conflict() {
    let [with, mut new] = with_and_without_fields();
    new["spec"]["parameters"]["instanceType"] = json!("g5.xlarge");
    let edit = json!({"spec": {"parameters": {"instanceType": "g4dn.2xlarge"}}});
    let applied = ("kubectl-client-side-apply", &with);
    for (writers, manager) in [
        (&[applied][..], "kubectl-client-side-apply"),
        (&[applied, ("kubectl-edit", &edit)], "kubectl-edit"),
    ] {
        for args in [&["--no-validate"][..], &["--no-validate", "--dry-run=server"]] {
            let cluster = written_by(writers).await;
            let before = stored(&cluster);
            let (told, written) = apply(Arc::clone(&cluster), &[("a.yaml", &new)], args).await;
            assert_eq!((told.code, written), (2, 0), "{}", told.told());
            let words = format!("spec.parameters.instanceType: is set by {manager}");
            assert!(told.err.contains(&words), "{}", told.err);
            assert_eq!(stored(&cluster), before);
        }
        let cluster = written_by(writers).await;
        let force = ["--no-validate", "--force-conflicts"];
        let (told, _) = apply(Arc::clone(&cluster), &[("a.yaml", &new)], &force).await;
        assert_eq!((told.code, &stored(&cluster)["spec"]), (0, &new["spec"]), "{}", told.told());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_secret_of_another_environment_is_rejected() {
    let with_secret = |name: &str, secret: &str| {
        let mut object = workspace(name, "g4dn.xlarge", "us-east-1");
        object["spec"]["writeConnectionSecretToRef"] = json!({"name": secret});
        object
    };
    let (one, two) = (with_secret("one", "conn"), with_secret("two", "conn"));
    let words = "two.yaml: GpuDevWorkspace team/two is rejected";
    for args in [&["--no-validate"][..], &["--no-validate", "--dry-run=server"]] {
        let files = [("one.yaml", &one), ("two.yaml", &two)];
        let (told, written) = apply(hiding_compositions(&[]), &files, args).await;
        assert_eq!((told.code, written), (2, 0), "{}", told.told());
        assert!(told.err.contains(words), "{}", told.err);
        // One exists in the namespace.
        let (told, written) = apply(hiding_compositions(&[&one]), &files[1..], args).await;
        assert_eq!((told.code, written), (2, 0), "{}", told.told());
        let field = "spec.writeConnectionSecretToRef.name: found \"conn\", the connection Secret of \
                     GpuDevWorkspace one; allowed: a name that no other";
        assert!(told.err.contains(words) && told.err.contains(field), "{}", told.err);
    }
    // Environments that share a Secret already are not rejected, and neither is another namespace.
    let mut elsewhere = one.clone();
    elsewhere["metadata"]["namespace"] = json!("art");
    for live in [[&one, &two], [&elsewhere, &elsewhere]] {
        let (told, written) =
            apply(hiding_compositions(&live), &[("two.yaml", &two)], &["--no-validate"]).await;
        assert_eq!((told.code, written), (0, 1), "{}", told.told());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workspace_without_a_key_or_network_has_notes() {
    let [composition, settings] = offer("100");
    let mut bare = workspace("ada", "g4dn.xlarge", "us-east-1");
    bare["spec"]["parameters"].as_object_mut().unwrap().remove("sshPublicKeys");
    let (told, _) = apply(cluster(&[&composition, &settings]), &[("a.yaml", &bare)], &[]).await;
    for words in ["No SSH key: you will connect by Session Manager", "SSH is closed, because no"] {
        assert!(told.code == 0 && told.err.contains(words), "{words}: {}", told.told());
    }
    let mut open = workspace("ada", "g4dn.xlarge", "us-east-1");
    open["spec"]["parameters"]["allowedCidrs"] = json!(["203.0.113.0/24"]);
    let (told, _) = apply(cluster(&[&composition, &settings]), &[("a.yaml", &open)], &[]).await;
    assert!(told.code == 0 && !told.err.contains("SSH"), "{}", told.told());
}
