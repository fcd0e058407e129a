//! The platform team changes its Settings while environments run.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use function_paved_road::apis::Flavour;
use function_paved_road::models::{KINDS, Kind, Scope};
use futures::future::{try_join, try_join_all, try_join3};
use serde_json::{Value, json};

use super::{desired, settled};
use crate::environment::{Desired, Environment, is_ready, slot};
use crate::eventually::eventually;
use crate::fixture::{Fixture, is_part};
use crate::scenarios::deletion::{self, Leftovers};

/// After any change of Settings, running resources stay as they are, and new resources follow it.
pub(in crate::scenarios) async fn new_settings_leave_running_resources_alone(
    fixture: Fixture,
) -> Result<()> {
    let environments = fixture.shared_environments().await?;
    let before = desired(&environments).await?;
    let old = fixture.settings().await?;
    let namespace = environments.first().map(Environment::namespace).unwrap_or_default();
    fixture.patch_settings(&json!({"data": other_settings(namespace, &fixture.namespace)})).await?;
    let ((new, before), (), ()) = try_join3(
        new_ones(&fixture),
        new_parts_have_them(&fixture),
        run_on(&environments, &before),
    )
    .await?;
    fixture.put_settings(&old).await?;
    // Databases are shared again, and separate servers keep running.
    run_on(&new, &before).await?;
    let gone = new.iter().map(async |environment| {
        deletion::goes_by_its_usages(&fixture, environment, &deletion::usages("rds")).await
    });
    try_join_all(gone).await.map(drop)
}

/// Creates a pool with the changed runtime class, and unified environments with separate database
/// servers. Returns the unified environments and their desired state.
async fn new_ones(fixture: &Fixture) -> Result<(Vec<Environment>, Vec<Desired>)> {
    let pool = fixture.example("stock-pool", Flavour::Namespaced, json!({}))?;
    pool.apply().await?;
    let servers = Flavour::ALL.map(async |flavour| {
        let change = json!({"spec": {"frontend": {"retainFiles": false}}});
        let environment = fixture.ready("unified-environment", flavour, change).await?;
        let server = environment.slot("postgres-instance").await?;
        ensure!(server["spec"]["forProvider"]["region"] == "eu-west-1", "a server elsewhere: {server}");
        let asked = &server["spec"]["forProvider"];
        ensure!(asked["maxAllocatedStorage"] == 200 && asked["skipFinalSnapshot"] == true, "{asked}");
        environment.edit(&json!({"spec": {"database": {"size": "large"}}})).await?;
        eventually("the server is a larger one", async || {
            let class =
                environment.slot("postgres-instance").await?["spec"]["forProvider"]["instanceClass"].clone();
            Ok((class == "db.m7g.large" && environment.is_settled().await?).then_some(()))
        })
        .await?;
        let runs = environment.rests().await?;
        anyhow::Ok((environment, runs))
    });
    let servers = try_join_all(servers).await?;
    let deployment = pool.slot("deployment").await?;
    let class = &deployment["spec"]["template"]["spec"]["runtimeClassName"];
    ensure!(class == "nvidia", "the new pool's runtime class is {class}");
    Ok(servers.into_iter().unzip())
}

/// Other new environments also follow the changed Settings, and are deleted again. Additional
/// environments with separate servers are deleted half-made.
async fn new_parts_have_them(fixture: &Fixture) -> Result<()> {
    let half_made = async {
        let files_go = json!({"metadata": {"name": "half-made"}, "spec": {"frontend": {"retainFiles": false}}});
        let half_made = Flavour::ALL.map(async |flavour| {
            let environment = fixture.example("unified-environment", flavour, files_go.clone())?;
            environment.apply().await?;
            eventually("the server is on its way", async || {
                Ok(environment.slot("postgres-instance").await.ok())
            })
            .await?;
            deletion::goes_as_it_is(fixture, &environment).await
        });
        Leftovers::are_gone(&try_join_all(half_made).await?, &fixture.objects).await
    };
    let made = made_otherwise().into_iter().map(async |(api, change, seen)| {
        let environment = fixture.ready(api, Flavour::Namespaced, change).await?;
        for (slot, pointer, wanted) in seen {
            let part = environment.slot(slot).await?;
            let found = part["spec"]["forProvider"].pointer(pointer);
            ensure!(found == Some(&wanted), "{slot} {pointer} is {found:?}, not {wanted}");
        }
        deletion::goes(fixture, &environment).await
    });
    try_join(half_made, try_join_all(made)).await.map(drop)
}

/// A slot, a JSON pointer into its resource's parameters, and the value there.
type Seen = (&'static str, &'static str, Value);

/// Environments, and the values that each takes from the changed Settings.
fn made_otherwise() -> Vec<(&'static str, Value, Vec<Seen>)> {
    let sized =
        |size: &str| json!({"metadata": {"name": size}, "spec": {"parameters": {"size": size}}});
    vec![
        (
            "gpu-workspace",
            json!({"spec": {"parameters": {"instanceType": "g5.xlarge"}}}),
            vec![
                ("instance", "/ami", json!("ami-0fedcba9876543210")),
                ("instance", "/subnetId", json!("subnet-0123456789abcdef0")),
                ("security-group", "/vpcId", json!("vpc-0123456789abcdef0")),
                (
                    "role",
                    "/permissionsBoundary",
                    json!("arn:aws:iam::123456789012:policy/boundary"),
                ),
            ],
        ),
        (
            "application-environment",
            json!({}),
            vec![
                ("gke-cluster", "/network", json!("projects/acme-dev/global/networks/other")),
                ("gke-cluster", "/nodeLocations", json!(["us-central1-a"])),
                (
                    "gke-cluster",
                    "/subnetwork",
                    json!("projects/acme-dev/regions/us-central1/subnetworks/others"),
                ),
                ("gke-cluster", "/ipAllocationPolicy/clusterSecondaryRangeName", json!("pods")),
                ("node-pool", "/nodeConfig/diskSizeGb", json!(60)),
                ("node-pool", "/nodeConfig/machineType", json!("e2-standard-8")),
                ("cloudsql-instance", "/databaseVersion", json!("POSTGRES_16")),
                ("cloudsql-instance", "/settings/tier", json!("db-custom-4-15360")),
            ],
        ),
        (
            "virtual-environment",
            sized("small"),
            vec![
                ("cluster", "/location", json!("us-east1")),
                ("cluster", "/network", json!("others")),
                ("node-pool", "/nodeConfig/machineType", json!("n2-standard-2")),
            ],
        ),
        (
            "virtual-environment",
            sized("medium"),
            vec![
                ("cluster", "/region", json!("us-west-2")),
                ("cluster", "/roleArn", json!("arn:aws:iam::123456789012:role/others-cluster")),
                ("node-pool", "/nodeRoleArn", json!("arn:aws:iam::123456789012:role/others-nodes")),
                ("node-pool", "/instanceTypes", json!(["m7i.xlarge"])),
            ],
        ),
        (
            "virtual-environment",
            sized("large"),
            vec![
                ("cluster", "/location", json!("northeurope")),
                ("cluster", "/resourceGroupName", json!("others")),
                ("cluster", "/defaultNodePool/vmSize", json!("Standard_D8s_v6")),
            ],
        ),
    ]
}

/// Calls the function with the new Settings for all running environments. None of them may change.
async fn run_on(environments: &[Environment], before: &[Desired]) -> Result<()> {
    try_join_all(environments.iter().map(Environment::poke)).await?;
    settled(environments).await?;
    for (environment, before) in environments.iter().zip(before) {
        let after = environment.desired().await?;
        ensure!(after == *before, "{} changed: {before:?}, {after:?}", environment.resource());
    }
    Ok(())
}

/// Tags and publishers of running resources follow the Settings, and no resource is created again.
pub(in crate::scenarios) async fn new_tags_and_publishers_reach_running_resources(
    fixture: Fixture,
) -> Result<()> {
    let environments = fixture.shared_environments().await?;
    let before = try_join_all(environments.iter().map(Environment::uids)).await?;
    let old = fixture.settings().await?;
    fixture.patch_settings(&json!({"data": followed_settings()})).await?;
    says(&environments, true).await?;
    fixture.put_settings(&old).await?;
    // Removed tags and publishers disappear.
    says(&environments, false).await?;
    let after = try_join_all(environments.iter().map(Environment::uids)).await?;
    ensure!(before == after, "resources were created again for a tag");
    Ok(())
}

/// Networks follow the Settings if an environment leaves them to the platform team.
pub(in crate::scenarios) async fn new_networks_reach_running_resources(
    fixture: Fixture,
) -> Result<()> {
    let open = json!({"spec": {"parameters": {"allowedCidrs": null}}});
    let workspaces =
        Flavour::ALL.map(|flavour| fixture.ready("gpu-workspace", flavour, open.clone()));
    let workspaces = try_join_all(workspaces).await?;
    let mut clusters = fixture.shared_environments().await?;
    clusters.retain(|environment| environment.manifest["spec"]["parameters"]["type"].is_string());
    ensure!(clusters.len() == fixture.clusters().count(), "there are {} clusters", clusters.len());
    let before = try_join_all(workspaces.iter().chain(&clusters).map(uid_of_what_stays)).await?;
    let old = fixture.settings().await?;
    fixture.patch_settings(&json!({"data": networks()})).await?;
    lets_in(&workspaces, &clusters, true).await?;
    fixture.put_settings(&old).await?;
    lets_in(&workspaces, &clusters, false).await?;
    let after = try_join_all(workspaces.iter().chain(&clusters).map(uid_of_what_stays)).await?;
    ensure!(before == after, "resources were created again for a network: {before:?}, {after:?}");
    Ok(())
}

/// Affected environments report a wrong setting by name, and running resources stay as they are.
pub(in crate::scenarios) async fn wrong_settings_change_no_running_resource(
    fixture: Fixture,
) -> Result<()> {
    let workspaces = Flavour::ALL.map(async |flavour| {
        let workspace = fixture.ready("gpu-workspace", flavour, json!({})).await?;
        let runs = workspace.rests().await?;
        anyhow::Ok((workspace, runs))
    });
    let (workspaces, before): (Vec<_>, Vec<_>) =
        try_join_all(workspaces).await?.into_iter().unzip();
    let old = fixture.settings().await?;
    let wrong = json!({"gpuWorkspace": {"amis": {"us-east-1": {"default": "no image"}}}});
    fixture.patch_settings(&json!({"data": wrong})).await?;
    for workspace in &workspaces {
        workspace.touch().await?;
        let message = workspace.provisioned("InvalidSettings").await?;
        ensure!(
            message.contains("gpuWorkspace.amis"),
            "the condition does not name the setting: {message}"
        );
    }
    ensure!(desired(&workspaces).await? == before, "a wrong setting changed running resources");
    fixture.put_settings(&old).await?;
    run_on(&workspaces, &before).await
}

/// The uid of the machine or the cluster that the networks reach.
async fn uid_of_what_stays(environment: &Environment) -> Result<Value> {
    let slot =
        if is_part(&environment.object().await?, "instance") { "instance" } else { "cluster" };
    Ok(environment.slot(slot).await?["metadata"]["uid"].clone())
}

/// Waits until workspaces and clusters allow the changed networks, or no longer allow them.
async fn lets_in(workspaces: &[Environment], clusters: &[Environment], wanted: bool) -> Result<()> {
    try_join_all(workspaces.iter().chain(clusters).map(Environment::poke)).await?;
    for workspace in workspaces {
        workspace
            .until(&format!("reached by SSH from another network: {wanted}"), |object| {
                is_ready(object) && is_part(object, &format!("ssh-{SSH_FROM}")) == wanted
            })
            .await?;
    }
    for cluster in clusters {
        eventually(
            &format!("the cluster's API is reached from another network: {wanted}"),
            async || {
                let spec = cluster.slot("cluster").await?["spec"].to_string();
                Ok((spec.contains(API_FROM) == wanted).then_some(()))
            },
        )
        .await?;
    }
    // No provider rejects the change.
    settled(clusters).await
}

/// Waits until all resources that support tags have the tag and sites have the publisher, or
/// neither.
async fn says(environments: &[Environment], wanted: bool) -> Result<()> {
    try_join_all(environments.iter().map(Environment::poke)).await?;
    let mut carriers = BTreeSet::new();
    for environment in environments {
        let what = format!("{} says {TAG}, and {PUBLISHER}: {wanted}", environment.resource());
        let slots = eventually(&what, async || {
            let composed = environment.composed().await?;
            let tagged: Vec<_> =
                composed.iter().filter_map(|part| Some((slot(part), tag(part)?))).collect();
            let policies = composed.iter().filter(|part| slot(part) == "frontend-bucket-policy");
            let says = policies.map(|policy| policy["spec"].to_string().contains(PUBLISHER));
            let all =
                tagged.iter().map(|(_, tag)| *tag == TAG).chain(says).all(|says| says == wanted);
            let slots = tagged.iter().map(|(slot, _)| (*slot).to_owned());
            Ok(all.then(|| slots.collect::<Vec<_>>()))
        })
        .await?;
        carriers.extend(slots);
    }
    for slot in
        ["instance", "frontend-bucket", "bucket", "cloudsql-instance", "node-pool", "cluster"]
    {
        ensure!(carriers.contains(slot), "{slot} carries no tags: {carriers:?}");
    }
    settled(environments).await
}

/// A resource's value of the tag, or an empty text. None if its kind has no tags.
fn tag(part: &Value) -> Option<&str> {
    let is_its = |kind: &&Kind| {
        part["kind"] == kind.kind
            && [Scope::LegacyCluster, Scope::Namespaced]
                .iter()
                .any(|scope| crossplane::api_version::group_of(part) == kind.group(*scope))
    };
    let path = KINDS.iter().map(|info| &info.kind).find(is_its)?.tags?.replace('.', "/");
    let tag = part.pointer(&format!("/spec/forProvider/{path}/{TAG_KEY}"));
    Some(tag.and_then(Value::as_str).unwrap_or_default())
}

const TAG_KEY: &str = "cost-center";
const TAG: &str = "4711";
const PUBLISHER: &str = "arn:aws:iam::123456789012:role/another-publisher";
const SSH_FROM: &str = "192.0.2.0/28";
const API_FROM: &str = "192.0.2.16/28";

/// Settings that change running resources.
fn followed_settings() -> Value {
    json!({
        "tags": {TAG_KEY: TAG},
        "tagsFromLabels": {"claim": "crossplane.io/claim-name"},
        "unifiedEnvironment": {"publisherRoleArns": [PUBLISHER]},
    })
}

/// Settings that change running resources if their owner leaves the field unset.
fn networks() -> Value {
    json!({"gpuWorkspace": {"allowedCidrs": [SSH_FROM]}, "environment": {"allowedCidrs": [API_FROM]}})
}

/// Changed values of all other settings. Provider configs change for running environments. New
/// environments in the namespace `new` use the existing provider configs.
fn other_settings(namespace: &str, new: &str) -> Value {
    let lifecycle =
        json!({"ttl": "30d", "maximum": "60d", "onExpiry": "Stop", "keepStoppedFor": "90d"});
    let config = |own: &str| {
        json!({
            "name": "other",
            "kind": "ProviderConfig",
            "byNamespace": {
                namespace: {"name": own, "kind": "ProviderConfig"},
                new: {"name": "default", "kind": "ClusterProviderConfig"},
            },
        })
    };
    json!({
        "budget": {"defaultHourlyUSD": "100", "byNamespace": {namespace: "200"}},
        "controller": {"deletionsPerHour": 5},
        "minimumSchemaRevision": 1,
        "pricing": {
            "discountPercent": 5,
            "overrides": [{"type": "g5.xlarge", "region": "us-east-1", "usdPerHour": "1"}],
        },
        "providerConfigs": {
            "aws": config("aws-of-its-own"),
            "azure": config("azure-of-its-own"),
            "gcp": config("gcp-of-its-own"),
            "helm": config("helm-of-its-own"),
            "kubernetes": config("kubernetes-of-its-own"),
            "sql": config("sql-of-its-own"),
        },
        "gpuWorkspace": {
            "lifecycle": lifecycle,
            // Workspaces with their own networks ignore this.
            "allowedCidrs": [SSH_FROM],
            "allowedCidrsWithin": ["192.0.2.0/24", "203.0.113.0/24"],
            "amis": {"us-east-1": {
                "default": "ami-0fedcba9876543210",
                "byFamily": {"p3": "ami-00fedcba987654321"},
            }},
            "instanceTypes": ["g5.xlarge"],
            "networks": {"us-east-1": {"vpcId": "vpc-0123456789abcdef0", "subnetId": "subnet-0123456789abcdef0"}},
            "permissionsBoundary": "arn:aws:iam::123456789012:policy/boundary",
        },
        "applicationEnvironment": {
            "lifecycle": lifecycle,
            "databaseTier": "db-custom-4-15360",
            "databaseVersion": "POSTGRES_16",
            "diskSizeGb": 60,
            "machineTypes": {"small": "e2-standard-2", "medium": "e2-standard-8", "large": "e2-standard-16"},
            "network": "projects/acme-dev/global/networks/other",
            "subnetwork": "others",
            "subnetworks": {"us-central1": "projects/acme-dev/regions/us-central1/subnetworks/others"},
            "clusterSecondaryRangeName": "pods",
            "servicesSecondaryRangeName": "services",
            "projectId": "other-dev",
            "zones": {"us-central1": ["us-central1-a"]},
        },
        "unifiedEnvironment": {
            "lifecycle": lifecycle,
            "region": "eu-west-1",
            "database": {"mode": "rds"},
            "rds": {
                "subnetGroup": "databases",
                "securityGroupIds": ["sg-0123456789abcdef0"],
                "finalSnapshot": false,
                "maxAllocatedStorage": 200,
            },
            "resources": {
                "small": {"cpu": "1", "memory": "1Gi"},
                "medium": {"cpu": "2", "memory": "2Gi"},
                "large": {"cpu": "4", "memory": "4Gi"},
            },
            "ingress": {
                "domain": "other.acme.io",
                "className": "other",
                "annotations": {"example.org/other": "yes"},
                "clusterIssuer": "other",
                "tlsSecretName": "other",
            },
        },
        "stockPool": {"lifecycle": lifecycle, "runtimeClassName": "nvidia"},
        "environment": other_virtual_environments(&lifecycle),
    })
}

/// The changed settings of virtual environments.
fn other_virtual_environments(lifecycle: &Value) -> Value {
    json!({
        "lifecycle": lifecycle,
        "charts": {"vcluster": "0.37.0", "argocd": "10.2.0", "knative": "1.24.0"},
        "chartRepositories": ["https://charts.example.org/"],
        "typeBySize": {"small": "gke", "medium": "eks", "large": "aks"},
        "exposeAllowed": false,
        "loadBalancerAnnotations": {"service.beta.kubernetes.io/aws-load-balancer-scheme": "internal"},
        "machineTypes": {
            "gke": {"small": "n2-standard-2", "medium": "n2-standard-4", "large": "n2-standard-8"},
            "eks": {"small": "m7i.large", "medium": "m7i.xlarge", "large": "m7i.2xlarge"},
            "aks": {"small": "Standard_D2s_v6", "medium": "Standard_D4s_v6", "large": "Standard_D8s_v6"},
        },
        "gke": {
            "location": "us-east1",
            "network": "others",
            "projectId": "other-dev",
            "subnetwork": "others-us-east1",
            "diskSizeGb": 60,
        },
        "eks": {
            "clusterRoleArn": "arn:aws:iam::123456789012:role/others-cluster",
            "nodeRoleArn": "arn:aws:iam::123456789012:role/others-nodes",
            "ebsCsiRoleArn": "arn:aws:iam::123456789012:role/others-volumes",
            "region": "us-west-2",
            "subnetIds": ["subnet-0c3d4e5f607182930", "subnet-0d4e5f60718293041"],
        },
        "aks": {
            "identity": "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/resourceGroups/others/providers/\
                         Microsoft.ManagedIdentity/userAssignedIdentities/others",
            "location": "northeurope",
            "resourceGroupName": "others",
        },
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use xtask::{workspace, yaml};

    use super::*;
    use crate::control_plane::settings::environment_config;
    use crossplane::json::merge_patch;

    /// Fields that the platform team does not set, because they come with the Compositions.
    const OF_COMPOSITIONS: [&str; 5] =
        [".apiVersion", ".kind", ".metadata", ".schemaRevision", ".settingsFrom"];

    /// The settings of a schema that are absent from `changed`, or have their old value there.
    fn unchanged(schema: &Value, old: &Value, changed: &Value, path: &str) -> Vec<String> {
        if OF_COMPOSITIONS.contains(&path) {
            return Vec::new();
        }
        if let Some(fields) = schema["properties"].as_object() {
            let below = |(name, schema): (&String, &Value)| {
                unchanged(schema, &old[name], &changed[name], &format!("{path}.{name}"))
            };
            return fields.iter().flat_map(below).collect();
        }
        match (&schema["additionalProperties"], changed.as_object()) {
            (Value::Object(_), Some(entries)) if !entries.is_empty() => {
                let schema = &schema["additionalProperties"];
                let below = |(name, changed): (&String, &Value)| {
                    unchanged(schema, &old[name], changed, &format!("{path}.{name}"))
                };
                entries.iter().flat_map(below).collect()
            }
            _ if [&Value::Null, &json!({}), old].contains(&changed) => vec![path.to_owned()],
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_setting_is_changed() {
        let path = workspace::root()
            .join("package/function/input/paved-road.fn.crossplane.io_settings.yaml");
        let input = yaml::read(&path).unwrap().remove(0);
        let schema = &input["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let old = environment_config(workspace::root()).unwrap()["data"].clone();
        let mut changed = other_settings("team", "new");
        merge_patch(&mut changed, followed_settings());
        merge_patch(&mut changed, networks());
        assert_eq!(unchanged(schema, &old, &changed, ""), [""; 0]);
        // The check finds unchanged settings.
        changed["stockPool"]["runtimeClassName"] = json!(null);
        changed["environment"]["gke"]["location"] = old["environment"]["gke"]["location"].clone();
        changed["gpuWorkspace"]["amis"] = json!({});
        let seen =
            [".environment.gke.location", ".gpuWorkspace.amis", ".stockPool.runtimeClassName"];
        assert_eq!(unchanged(schema, &old, &changed, ""), seen);
    }
}
