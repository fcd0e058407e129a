//! What `paved apply` writes: everything or nothing, as the API server and the function in it take it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::kubernetes::{Cluster, ready};
use support::{Run, folder, within};
use tokio::process::Command;

const COMPOSITIONS: &str = "/apis/apiextensions.crossplane.io/v1/compositions";

async fn apply(args: &[&str], cluster: &Cluster) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
    command.arg("apply").args(args).env_clear().env("KUBECONFIG", cluster.kubeconfig());
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run {
        code: output.status.code().unwrap().try_into().unwrap(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A workspace as it is applied.
fn workspace(name: &str, machine: &str, region: &str) -> Value {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada";
    let spec = json!({"parameters":
        {"owner": "ada@acme.io", "instanceType": machine, "region": region, "sshPublicKeys": [key]}});
    json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace", "spec": spec,
        "metadata": {"name": name, "namespace": "team"}})
}

/// A cluster that takes these workspaces, and has some of them already. Who asks for them need not see what they are composed by.
async fn taking(new: &[&Value], live: &[&Value]) -> Cluster {
    let denied = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "compositions is forbidden: User \"ada\" cannot list resource \"compositions\" at the cluster scope"});
    let path = |method: &str, of: &Value| {
        let name = of["metadata"]["name"].as_str().unwrap();
        format!("{method} /apis/platform.acme.io/v1alpha1/namespaces/team/gpudevworkspaces/{name}")
    };
    let taken = new.iter().map(|one| (path("PATCH", one), (*one).clone()));
    let there = live.iter().map(|one| (path("GET", one), (*one).clone()));
    let all: Vec<_> = taken.chain(there).chain([(COMPOSITIONS.to_owned(), denied)]).collect();
    let all: Vec<_> = all.iter().map(|(path, object)| (path.as_str(), object.clone())).collect();
    Cluster::with(ready("GpuDevWorkspace", json!({}), json!({})), &all).await
}

/// How many were written.
fn written(cluster: &Cluster) -> usize {
    cluster.asked().iter().filter(|one| one.starts_with("PATCH") && !one.contains("dryRun")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_composition_would_refuse_is_not_applied_unless_the_cluster_is_to_decide() {
    let good = workspace("good", "g4dn.xlarge", "us-east-1");
    let bad = workspace("bad", "p9.enormous", "us-east-1");
    let cluster = taking(&[&good, &bad], &[]).await;
    let folder = folder(&[("good.yaml", &good.to_string()), ("wrong.yaml", &bad.to_string())]);
    let told = apply(&[&within(&folder, "")], &cluster).await;
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
    assert_eq!(written(&cluster), 0);

    let told = apply(&[&within(&folder, ""), "--no-validate"], &cluster).await;
    assert!(told.code == 0 && written(&cluster) == 2, "{}", told.told());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_refused_for_what_is_new_alone() {
    // Nobody told the Settings: the platform may well have a machine image for this region.
    let runs = workspace("ada", "g4dn.xlarge", "eu-west-1");
    let odd = workspace("ada", "p9.enormous", "eu-west-1");
    for (live, new, code) in [(&runs, &runs, 0), (&runs, &odd, 3), (&odd, &odd, 0), (&odd, &runs, 0)] {
        let cluster = taking(&[new], &[live]).await;
        let folder = folder(&[("claim.yaml", &new.to_string())]);
        let told = apply(&[&within(&folder, "")], &cluster).await;
        assert_eq!((told.code, written(&cluster)), (code, usize::from(code == 0)), "{}", told.told());
        let blamed = told.err.contains("eu-west-1")
            || told.err.contains(
                "not checked against the \
                composition:",
            );
        assert!(!blamed && told.err.contains("you may not read Compositions"), "{}", told.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_function_composes_is_not_judged_by_ours() {
    let odd = workspace("ada", "p9.enormous", "us-east-1");
    let step = json!({"step": "render", "functionRef": {"name": "function-go-templating"},
        "input": {"apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate"}});
    let theirs = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "theirs"}, "spec": {"pipeline": [step], "compositeTypeRef":
            {"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace"}}});
    let all = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionList", "metadata": {},
        "items": [theirs]});
    let path = "PATCH /apis/platform.acme.io/v1alpha1/namespaces/team/gpudevworkspaces/ada";
    let others = [(COMPOSITIONS, all), (path, odd.clone())];
    let cluster = Cluster::with(ready("GpuDevWorkspace", json!({}), json!({})), &others).await;
    let folder = folder(&[("claim.yaml", &odd.to_string())]);
    let told = apply(&[&within(&folder, "")], &cluster).await;
    assert!(told.code == 0 && written(&cluster) == 1, "{}", told.told());
    assert!(told.err.contains("Composition theirs uses another function"), "{}", told.err);
}
