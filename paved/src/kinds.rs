//! `paved kinds`: what this cluster makes, and the Compositions to choose from.

use std::collections::BTreeMap;

use function_paved_road::apis::{APIS, AnyApi};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use serde_json::Value;

use crate::Console;
use crate::cli;
use crate::cluster::{Cluster, Kind, Kinds, is_denied};
use crate::failure::Failure;
use crate::paint::{BOLD, DIM};

/// Lists the kinds. What the caller may not see of their Compositions is said.
pub(crate) async fn run(args: &cli::Kinds, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = Kinds::discover(&cluster).await?;
    let choices = choices(&cluster).await?;
    for kind in kinds.all() {
        let summary = api(kind.name()).map_or("", |api| api.info().summary);
        writeln!(console.out, "{BOLD}{}{BOLD:#}  {}", kind.name(), kind.resource.api_version)?;
        if !summary.is_empty() {
            writeln!(console.out, "  {summary}")?;
        }
        for choice in choices.iter().flatten().filter(|choice| choice.serves(kind)) {
            writeln!(console.out, "  {DIM}compositionRef:{DIM:#} {}{}", choice.name, choice.labels())?;
        }
    }
    if choices.is_none() {
        writeln!(console.err, "note: you may not list Compositions: the choices are left out")?;
    }
    Ok(())
}

/// The API that a kind of ours is, whatever its group.
fn api(kind: &str) -> Option<&'static dyn AnyApi> {
    let claim = APIS.iter().copied().find(|api| api.info().claim.kind == kind);
    claim.or_else(|| function_paved_road::apis::find(kind))
}

/// A Composition that an environment can ask for.
struct Choice {
    name: String,
    labels: BTreeMap<String, String>,
    group: String,
    composite: String,
}

impl Choice {
    fn of(object: &DynamicObject) -> Self {
        let text =
            |path: &str| object.data.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/spec/compositeTypeRef/apiVersion");
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            labels: object.metadata.labels.clone().unwrap_or_default(),
            group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            composite: text("/spec/compositeTypeRef/kind"),
        }
    }

    /// Whether it composes what this kind, which may be a claim, stands for.
    fn serves(&self, kind: &Kind) -> bool {
        let composed = api(kind.name()).map(AnyApi::info);
        let is_ours = composed.is_some_and(|info| {
            let claimed = info.claim.kind == kind.name() && info.composite.kind == self.composite;
            claimed || self.composite == kind.name()
        });
        self.group == kind.resource.group && is_ours
    }

    /// The labels by which compositionSelector chooses; those of a package manager say nothing.
    fn labels(&self) -> String {
        let own: Vec<String> = self
            .labels
            .iter()
            .filter(|(key, _)| !key.contains('/'))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) }
    }
}

/// The cluster's Compositions; `None` where the caller may not list them.
async fn choices(cluster: &Cluster) -> Result<Option<Vec<Choice>>, Failure> {
    let compositions = ApiResource {
        group: "apiextensions.crossplane.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.crossplane.io/v1".to_owned(),
        kind: "Composition".to_owned(),
        plural: "compositions".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &compositions);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(Some(list.items.iter().map(Choice::of).collect())),
        Err(error) if is_denied(&error) => Ok(None),
        Err(error) => Err(cluster.explain(&error, "list Compositions")),
    }
}
