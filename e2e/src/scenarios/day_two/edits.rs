//! Every field of an environment that its owner may change, and the results of each change.

use std::slice;

use anyhow::{Result, ensure};
use futures::future::{try_join_all, try_join3};
use serde_json::{Value, json};

use crate::environment::{Desired, Environment};
use crate::eventually::eventually;
use crate::fixture::Fixture;
use crate::scenarios::claims::tells_its_status;

/// An edit and its results: slots, JSON pointers into their resources, and values. Null means an
/// absent value. In a list, one element must have the value.
struct Edit {
    patch: Value,
    seen: Vec<(&'static str, &'static str, Value)>,
}

impl Edit {
    fn new<const N: usize>(patch: Value, seen: [(&'static str, &'static str, Value); N]) -> Self {
        Self { patch, seen: seen.into() }
    }

    /// The results that are not visible yet.
    async fn missing(&self, environment: &Environment) -> Result<Vec<String>> {
        let composed = environment.composed().await?;
        let is_missing = |(slot, pointer, expected): &&(&str, &str, Value)| {
            let part = composed.iter().find(|object| crate::environment::slot(object) == *slot);
            let found = part.and_then(|part| asked(part).pointer(pointer)).unwrap_or(&Value::Null);
            found != expected && !found.as_array().is_some_and(|all| all.contains(expected))
        };
        let missing = self.seen.iter().filter(is_missing);
        Ok(missing
            .map(|(slot, pointer, expected)| format!("{slot} {pointer}: {expected}"))
            .collect())
    }
}

/// The desired object of a resource: the wrapped object, if there is one.
fn asked(part: &Value) -> &Value {
    part.pointer("/spec/forProvider/manifest").unwrap_or(part)
}

fn parameters(change: &Value) -> Value {
    json!({"spec": {"parameters": change}})
}

/// Edits of every updatable field, with values that the example does not have. Add-ons have a
/// separate edit.
fn edits(api: &str) -> Vec<Edit> {
    match api {
        "gpu-workspace" => workspace_edits(),
        "application-environment" => application_edits(),
        "unified-environment" => unified_edits(),
        "stock-pool" => pool_edits(),
        _ => virtual_edits(),
    }
}

fn workspace_edits() -> Vec<Edit> {
    let all = json!({
        "allowedCidrs": ["203.0.113.0/24", "198.51.100.7/32"],
        "instanceType": "g4dn.2xlarge",
        "diskGB": 120,
        "owner": "grace@acme.io",
    });
    vec![
        Edit::new(
            parameters(&all),
            [
                ("ssh-198.51.100.7/32", "/spec/forProvider/cidrIpv4", json!("198.51.100.7/32")),
                ("ssh-203.0.113.0/24", "/spec/forProvider/cidrIpv4", json!("203.0.113.0/24")),
                ("instance", "/spec/forProvider/instanceType", json!("g4dn.2xlarge")),
                ("instance", "/spec/forProvider/rootBlockDevice/volumeSize", json!(120)),
                ("instance", "/spec/forProvider/tags/WorkspaceOwner", json!("grace@acme.io")),
            ],
        ),
        Edit::new(
            parameters(&json!({"allowedCidrs": ["198.51.100.7/32"]})),
            [
                ("ssh-198.51.100.7/32", "/spec/forProvider/cidrIpv4", json!("198.51.100.7/32")),
                ("ssh-203.0.113.0/24", "", Value::Null),
            ],
        ),
    ]
}

fn application_edits() -> Vec<Edit> {
    let all =
        json!({"nodeCount": 2, "nodeSize": "large", "storageGB": 30, "deletionPolicy": "Orphan"});
    vec![
        Edit::new(
            parameters(&all),
            [
                ("node-pool", "/spec/forProvider/nodeCount", json!(2)),
                ("node-pool", "/spec/forProvider/nodeConfig/machineType", json!("e2-standard-4")),
                ("cloudsql-instance", "/spec/forProvider/settings/diskSize", json!(30)),
                ("bucket", "/spec/forProvider/forceDestroy", json!(false)),
            ],
        ),
        Edit::new(
            parameters(&json!({"deletionPolicy": "Delete"})),
            [("bucket", "/spec/forProvider/forceDestroy", json!(true))],
        ),
    ]
}

fn unified_edits() -> Vec<Edit> {
    let all = json!({"spec": {
        "backend": {
            "replicas": 3,
            "env": {"LOG_LEVEL": "debug"},
            "image": "ghcr.io/acme/checkout:1.5.0",
            "port": 9090,
        },
        "database": {"size": "large"},
        "frontend": {"retainFiles": false, "kind": "pages"},
    }});
    let variable = json!({"name": "LOG_LEVEL", "value": "debug"});
    let image = json!("ghcr.io/acme/checkout:1.5.0");
    vec![Edit::new(
        all,
        [
            ("backend-deployment", "/spec/replicas", json!(3)),
            ("backend-deployment", "/spec/template/spec/containers/0/env", variable),
            ("backend-deployment", "/spec/template/spec/containers/0/image", image),
            (
                "backend-deployment",
                "/spec/template/spec/containers/0/ports/0/containerPort",
                json!(9090),
            ),
            ("postgres-role", "/spec/forProvider/connectionLimit", json!(200)),
            ("frontend-bucket", "/spec/forProvider/forceDestroy", json!(true)),
            ("frontend-rewrite", "/spec/forProvider/codeSecretRef/key", json!("pages.js")),
        ],
    )]
}

fn pool_edits() -> Vec<Edit> {
    const LIMITS: [&str; 2] = [
        "/spec/template/spec/containers/0/resources/limits/memory",
        "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu",
    ];
    let image = json!("registry.k8s.io/pause:3.9");
    vec![Edit::new(
        json!({"spec": {"replicas": 3, "memory": "8Gi", "gpu": 0, "specName": "g1.2", "image": image}}),
        [
            ("deployment", "/spec/replicas", json!(3)),
            ("deployment", LIMITS[0], json!("8Gi")),
            ("deployment", LIMITS[1], Value::Null),
            ("deployment", "/metadata/labels/app.kubernetes.io~1component", json!("g1.2")),
            ("deployment", "/spec/template/spec/containers/0/image", image),
        ],
    )]
}

fn virtual_edits() -> Vec<Edit> {
    vec![Edit::new(
        parameters(&json!({"size": "medium", "expose": "loadBalancer"})),
        [
            (
                "vcluster",
                "/spec/forProvider/values/policies/resourceQuota/quota/count~1pods",
                json!("100"),
            ),
            (
                "vcluster",
                "/spec/forProvider/values/controlPlane/service/spec/type",
                json!("LoadBalancer"),
            ),
        ],
    )]
}

/// The edit of GKE, the only managed cluster whose nodes can be replaced.
fn gke_edit() -> Edit {
    Edit::new(
        parameters(&json!({"size": "large"})),
        [("node-pool", "/spec/forProvider/nodeConfig/machineType", json!("e2-standard-8"))],
    )
}

/// The edits of existing add-ons.
fn add_on_edits() -> Vec<Edit> {
    const SLOT: &str = "app-application";
    let others = json!("https://stefanprodan.github.io/others");
    let chart = json!({"repository": others, "name": "hello", "version": "1.0.0"});
    let other = ["https://git.example.org/team-shop/other.git", "deploy/other", "other-branch"];
    let followed = json!({"repoURL": other[0], "path": other[1], "targetRevision": other[2]});
    vec![
        Edit::new(
            parameters(
                &json!({"app": {"values": {"replicaCount": 1}, "chart": {"version": "6.10.0"}}}),
            ),
            [
                (SLOT, "/spec/source/helm/valuesObject/replicaCount", json!(1)),
                (SLOT, "/spec/source/targetRevision", json!("6.10.0")),
            ],
        ),
        Edit::new(
            parameters(&json!({"app": {"chart": chart}})),
            [
                (SLOT, "/spec/source/repoURL", others),
                (SLOT, "/spec/source/chart", json!("hello")),
                (SLOT, "/spec/source/targetRevision", json!("1.0.0")),
            ],
        ),
        Edit::new(
            parameters(&json!({"gitops": followed, "knative": {"enabled": false}})),
            [("gitops", "/spec/source", followed), ("knative", "", Value::Null)],
        ),
    ]
}

pub(in crate::scenarios) async fn updatable_field_reaches_its_resource(
    fixture: Fixture,
) -> Result<()> {
    let standing = fixture.shared_examples().await?;
    let (hosts, others): (Vec<_>, Vec<_>) =
        standing.iter().partition(|(api, _, _)| api.info().name == "virtual-environment");
    let others =
        others.iter().map(|(api, _, environment)| changes(environment, edits(api.info().name)));
    let mut clusters = fixture.shared_clusters().await?;
    clusters.retain(|(cluster, _, _)| *cluster == "gke");
    let clusters =
        clusters.iter().map(|(_, _, environment)| changes(environment, vec![gke_edit()]));
    let hosts = async {
        try_join_all(
            hosts.iter().map(|(api, _, environment)| changes(environment, edits(api.info().name))),
        )
        .await?;
        // The claim's environment may have the add-ons, so it is first. The next scenario that uses
        // the shared environments returns them to it.
        for (api, _, environment) in hosts {
            let add_ons = fixture.add_ons().await?;
            add_ons.join(environment).await?;
            tells_its_status(api.info().name, &environment.object().await?)?;
            for edit in add_on_edits() {
                arrives(environment, &edit).await?;
            }
            add_ons.leave(environment).await?;
        }
        Ok(())
    };
    try_join3(try_join_all(others), try_join_all(clusters), hosts).await?;
    for (_, _, environment) in &standing {
        // By then, providers have rejected any invalid value of the last edit.
        environment.rests().await?;
        super::settled(slice::from_ref(environment)).await?;
    }
    Ok(())
}

/// Every edit takes effect, and no resource is lost by it.
async fn changes(environment: &Environment, edits: Vec<Edit>) -> Result<()> {
    for edit in &edits {
        let before = environment.desired().await?;
        let after = arrives(environment, edit).await?;
        no_field_is_lost(environment, &before, &after)?;
    }
    Ok(())
}

/// Edits an environment, and waits until all results are visible and in sync. Returns the desired
/// state.
async fn arrives(environment: &Environment, edit: &Edit) -> Result<Desired> {
    let missing = edit.missing(environment).await?;
    ensure!(!missing.is_empty(), "{} has {} already", environment.resource(), edit.patch);
    environment.edit(&edit.patch).await?;
    let what = format!("{} has {}", environment.resource(), edit.patch);
    eventually(&what, async || {
        let is_there =
            edit.missing(environment).await?.is_empty() && environment.is_settled().await?;
        Ok(is_there.then_some(()))
    })
    .await?;
    environment.desired().await
}

/// The slot prefix of firewall rules. A rule belongs to a network and is deleted with it.
const OF_A_NETWORK: &str = "ssh-";

/// Fails if a resource was created again or is gone. Firewall rules may be gone.
fn no_field_is_lost(environment: &Environment, before: &Desired, after: &Desired) -> Result<()> {
    let is_lost = |(name, (uid, _)): &(&String, &(String, String))| match after.get(*name) {
        Some((now, _)) => now != uid,
        None => !name.starts_with(OF_A_NETWORK),
    };
    let lost: Vec<_> = before.iter().filter(is_lost).collect();
    ensure!(
        lost.is_empty(),
        "{}: created again or gone: {lost:?}: {after:?}",
        environment.resource()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use std::collections::BTreeSet;

    use function_paved_road::apis::{APIS, AnyApi, Flavour};
    use xtask::{workspace, yaml};

    use super::*;

    /// The paths of a schema's fields that may change.
    fn mutable(schema: &Value, path: &str, all: &mut BTreeSet<String>) {
        let rules = schema["x-kubernetes-validations"].as_array();
        if rules.is_some_and(|rules| rules.iter().any(|rule| rule["rule"] == "self == oldSelf")) {
            return;
        }
        let Some(fields) = schema["properties"].as_object() else {
            all.insert(path.to_owned());
            return;
        };
        for (name, field) in fields {
            mutable(field, &format!("{path}.{name}"), all);
        }
    }

    /// The fields among `fields` that have a value in a patch.
    fn changed<'f>(
        patch: &Value,
        fields: &'f BTreeSet<String>,
    ) -> impl Iterator<Item = &'f String> {
        fields.iter().filter(move |field| {
            let pointer = format!("/spec{}", field.replace('.', "/"));
            patch.pointer(&pointer).is_some_and(|value| !value.is_null())
        })
    }

    fn fields(api: &dyn AnyApi, flavour: Flavour) -> BTreeSet<String> {
        let folder = if flavour == Flavour::Claims { "xrd" } else { "namespaced/xrd" };
        let path = workspace::root().join(folder).join(format!("{}.yaml", api.info().name));
        let xrd = yaml::read(&path).unwrap().remove(0);
        let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut all = BTreeSet::new();
        mutable(&schema["properties"]["spec"], "", &mut all);
        // The scenarios of the lifecycle change these fields.
        all.retain(|path| !path.starts_with(".lifecycle."));
        all
    }

    #[test]
    fn every_field_that_may_change_is_changed() {
        for api in APIS {
            for flavour in Flavour::ALL {
                let (name, fields) = (api.info().name, fields(*api, flavour));
                let mut edits = edits(name);
                if name == "virtual-environment" {
                    edits.extend(add_on_edits());
                }
                let changed = edits.iter().flat_map(|edit| changed(&edit.patch, &fields));
                assert_eq!(changed.cloned().collect::<BTreeSet<_>>(), fields, "{name}");
                assert!(edits.iter().all(|edit| !edit.seen.is_empty()), "{name}");
            }
        }
    }

    #[test]
    fn a_field_that_cannot_change_is_none_of_them() {
        let fields = fields(*APIS.first().unwrap(), Flavour::Claims);
        assert!(
            fields.contains(".parameters.diskGB") && !fields.contains(".parameters.region"),
            "{fields:?}"
        );
    }
}
