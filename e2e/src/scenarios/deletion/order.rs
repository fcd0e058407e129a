//! The deletion order. The deletion of a protected resource is not even requested before the
//! resource that uses it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crossplane::conditions;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::environment::{Environment, slot};
use crate::objects::{End, Objects, reference, resource};

/// How long events of a deletion may take.
const NEWS: Duration = Duration::from_mins(1);

/// The slots of the Usages of an API's example without add-ons, as far as its claims or composites
/// need an order. A managed cluster is named by its type, on EKS with an app inside. `rds` is a
/// unified environment with its own database server.
pub(in crate::scenarios) fn usages(example: &str) -> Vec<&'static str> {
    match example {
        "gpu-workspace" => vec!["security-group-by-instance"],
        "unified-environment" => vec![
            "frontend-access-by-frontend-site",
            "frontend-rewrite-by-frontend-site",
            "postgres-db-by-backend-deployment",
            "postgres-role-by-postgres-db",
        ],
        "rds" => vec!["frontend-access-by-frontend-site", "frontend-rewrite-by-frontend-site"],
        "virtual-environment" => vec!["host-namespace-by-vcluster"],
        "eks" => vec![
            "cluster-by-node-pool",
            "node-pool-by-helm-config",
            "node-pool-by-kubernetes-config",
            "cluster-auth-by-helm-config",
            "cluster-auth-by-kubernetes-config",
            "ebs-csi-role-by-helm-config",
            "ebs-csi-role-by-kubernetes-config",
        ],
        "gke" | "aks" => vec!["cluster-by-helm-config", "cluster-by-kubernetes-config"],
        _ => vec![],
    }
}

/// Observes the deletion of an environment's resources.
pub(super) struct Order {
    usages: Vec<Usage>,
    ends: JoinSet<Result<(String, End)>>,
}

struct Usage {
    slot: String,
    of: String,
    by: String,
}

impl Order {
    /// Starts to observe all resources that Usages name.
    pub async fn new(objects: &Objects, environment: &Environment) -> Result<Self> {
        let composed = environment.composed().await?;
        let usages = composed.iter().filter(|object| is_usage(object)).map(Usage::read).collect();
        Self::watched(objects, composed, usages).await
    }

    /// The same for an unfinished environment: only Usages in force, and only existing resources.
    pub async fn from_unfinished(objects: &Objects, environment: &Environment) -> Result<Self> {
        let composed = environment.composed().await?;
        let is_in_force = |object: &&Value| {
            is_usage(object) && conditions::get(object, "Ready")["status"] == "True"
        };
        let mut usages: Vec<_> = composed.iter().filter(is_in_force).map(Usage::read).collect();
        let names: BTreeSet<_> = composed.iter().map(|object| named(&reference(object))).collect();
        usages.retain(|usage| names.contains(&usage.of) && names.contains(&usage.by));
        Self::watched(objects, composed, usages).await
    }

    async fn watched(objects: &Objects, composed: Vec<Value>, usages: Vec<Usage>) -> Result<Self> {
        let mut ends = JoinSet::new();
        for object in composed {
            let name = named(&reference(&object));
            if usages.iter().any(|usage| [&usage.of, &usage.by].contains(&&name)) {
                let (objects, version) = (objects.clone(), objects.version(&object).await?);
                ends.spawn(async move { Ok((name, objects.end(&object, version).await?)) });
            }
        }
        Ok(Self { usages, ends })
    }

    /// Ignores resources that were deleted by hand, at any time.
    pub fn but_for(mut self, freed: &[Value]) -> Self {
        let freed: Vec<_> = freed.iter().map(|part| named(&reference(part))).collect();
        self.usages.retain(|usage| !freed.contains(&usage.of) && !freed.contains(&usage.by));
        self
    }

    /// Checks that no resource's deletion was requested while another resource used it. The
    /// environment must be gone.
    pub async fn was_kept(mut self) -> Result<()> {
        let mut ends = BTreeMap::new();
        while let Some(end) = tokio::time::timeout(NEWS, self.ends.join_next()).await? {
            ends.extend([end??]);
        }
        were_kept(&self.usages, &ends)
    }
}

fn were_kept(usages: &[Usage], ends: &BTreeMap<String, End>) -> Result<()> {
    for usage in usages {
        let Usage { slot, of, by } = usage;
        let end =
            |name: &String| ends.get(name).with_context(|| format!("{slot}: there was no {name}"));
        let (used, using) = (end(of)?, end(by)?);
        if using.gone < used.asked {
            continue;
        }
        ensure!(
            was_let_go_with_another(usage, usages, ends),
            "{slot}: {of} was deleted before {by} was gone: {used:?}, {using:?}"
        );
        println!("    {slot}: Crossplane released {of} too early");
    }
    Ok(())
}

/// Whether Crossplane released a resource with several Usages after the end of a resource in
/// another Usage. docs/how-to/delete.md describes this case. When Crossplane reads a Usage that is
/// gone already, it takes the last remaining Usage for that one.
fn was_let_go_with_another(usage: &Usage, usages: &[Usage], ends: &BTreeMap<String, End>) -> bool {
    let Some(let_go) = ends.get(&usage.of).and_then(|used| used.let_go) else { return false };
    let mut others = usages.iter().filter(|other| other.of == usage.of && other.by != usage.by);
    others.any(|other| ends.get(&other.by).is_some_and(|end| end.gone < let_go))
}

impl Usage {
    fn read(object: &Value) -> Self {
        let end = |end: &str| {
            let end = &object["spec"][end];
            let mut whole = end.clone();
            whole["name"] = end["resourceRef"]["name"].clone();
            named(&whole)
        };
        Self { slot: slot(object).to_owned(), of: end("of"), by: end("by") }
    }
}

/// Whether an object is a Usage.
pub(super) fn is_usage(object: &Value) -> bool {
    object["kind"] == "Usage" || object["kind"] == "ClusterUsage"
}

/// The name of a referenced object within an environment.
fn named(reference: &Value) -> String {
    format!("{} {}", resource(reference), reference["name"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(of: &str, by: &str) -> Usage {
        Usage { slot: format!("usage-{of}-by-{by}"), of: of.to_owned(), by: by.to_owned() }
    }

    #[test]
    fn used_resource_is_deleted_last_unless_another_usage_released_it() {
        let (one, two) = ([usage("db", "app")], [usage("db", "grant"), usage("db", "app")]);
        for (usages, let_go, asked, are_kept) in [
            (one.as_slice(), Some(25), 40, true),
            (&one, None, 25, false),
            (&one, Some(25), 26, false),
            (&two, None, 40, true),
            (&two, None, 25, false),
            (&two, Some(25), 26, true),
            // Before any resource that uses it was gone.
            (&two, Some(15), 26, false),
        ] {
            let end = |let_go, asked, gone| End { let_go, asked, gone };
            let ends = [
                ("db", end(let_go, asked, 50)),
                ("grant", end(Some(1), 10, 20)),
                ("app", end(Some(1), 10, 30)),
            ];
            let ends = ends.into_iter().map(|(name, end)| (name.to_owned(), end)).collect();
            assert_eq!(were_kept(usages, &ends).is_ok(), are_kept, "{let_go:?}, {asked}");
        }
    }
}
