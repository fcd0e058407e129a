//! `paved apply` writes all documents or none, after the API server and the function have accepted
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;

use fake_kube::access::{Access, User};
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use support::{Run, folder, within};
use tokio::process::Command;

const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";

/// A cluster that makes GPU workspaces and has these objects.
fn cluster(objects: &[&Value]) -> Cluster {
    let names =
        json!({"kind": "GpuDevWorkspace", "plural": "gpudevworkspaces", "categories": ["paved"]});
    let kind = Kind::from_names("platform.acme.io", "v1alpha1", &names, true);
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
async fn apply(cluster: Cluster, files: &[(&str, &Value)], args: &[&str]) -> (Run, usize) {
    let cluster = Arc::new(cluster);
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
