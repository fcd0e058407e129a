//! Asks the function in this program about a document before it is applied.

use std::collections::BTreeMap;

use function_paved_road::apis::AnyApi;
use function_paved_road::settings::{Budget, Settings as ApiSettings};
use function_proto::v1::Severity;
use jiff::Timestamp;
use k8s_schema::Violation;
use kube::api::DynamicObject;
use paved_client::cluster::{
    Cluster, Composition, Kind, Kinds, Reference, compositions, is_denied,
};
use paved_render::function;
use paved_render::subject::observed::Observed;
use paved_render::subject::{Stored, Subject, pipeline_step as pipeline};
use serde_json::{Value, json};

use super::plan::Step;
use crate::Console;
use crate::cli::{self, Apply};
use crate::failure::Failure;
use crate::files::Inputs;
use crate::prepare::{self, Sources, settings};
use crate::style::harmless_name;

/// The source of the Composition and the Settings of an environment.
pub(super) enum Source {
    Files(Sources),
    Cluster(Box<pipeline::Step>),
    /// Unknown, for this reason.
    Unknown(String),
    /// Another function composes it.
    Foreign(String),
}

/// The function's opinion about an environment.
#[derive(Default)]
struct Opinion {
    /// Its reasons for a rejection.
    refusals: Vec<String>,
    /// Fields without effect.
    warnings: Vec<String>,
    advice: Vec<String>,
}

impl Source {
    /// Finds the source of each step: the named files, or else the cluster. A source that cannot be
    /// read from the cluster does not end the command.
    pub(super) async fn for_steps(
        steps: &[Step],
        args: &Apply,
        inputs: &Inputs,
        cluster: &Cluster,
    ) -> Vec<Self> {
        if args.settings.is_some() || args.composition.is_some() {
            let files = || Sources {
                settings: args.settings.clone(),
                composition: args.composition.clone(),
                inputs: inputs.clone(),
            };
            return steps.iter().map(|_| Self::Files(files())).collect();
        }
        let unknown = |why: &str| steps.iter().map(|_| Self::Unknown(why.to_owned())).collect();
        let all = match compositions(cluster).await {
            Ok(Some(all)) => all,
            Ok(None) => return unknown(&denied("Compositions")),
            Err(why) => return unknown(&why.to_string()),
        };
        let mut settings = Settings::default();
        let mut sources = Vec::new();
        for step in steps {
            let source = source_from_cluster(step, &all, &mut settings, cluster).await;
            sources.push(source.unwrap_or_else(Self::Unknown));
        }
        sources
    }

    /// The environment in the state `object`, with the observed resources.
    pub(super) fn subject(
        &self,
        step: &Step,
        object: &DynamicObject,
        seen: &Observed,
        console: &mut Console<'_>,
    ) -> Result<Subject, Failure> {
        // The API server accepted the object. If our schema rejects it, the XRDs are not ours.
        let other = |violations: &[Violation]| {
            let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
            Failure::Usage(format!(
                "the API in this cluster has another version: {}",
                told.join(", ")
            ))
        };
        let stored = Stored::in_flavour(&document(object), seen, Some(step.kind.flavour()))
            .map_err(|violation| other(&[violation]))?;
        if !stored.violations.is_empty() {
            return Err(other(&stored.violations));
        }
        let composite = stored.composite(seen).map_err(|violations| other(&violations))?;
        let pipeline = match self {
            Self::Files(sources) => {
                settings::find(&stored.target, &step.file, sources, &[], console)?
            }
            Self::Cluster(pipeline) => (**pipeline).clone(),
            Self::Unknown(_) => pipeline::Step::example(&stored.target, &stored.object["spec"])?,
            Self::Foreign(why) => return Err(Failure::Usage(why.clone())),
        };
        Ok(stored.among(composite, pipeline, step.what()))
    }

    /// Returns the function's opinion about the environment in the state `object`. Existing resources
    /// are not considered.
    fn opinion(
        &self,
        step: &Step,
        object: &DynamicObject,
        console: &mut Console<'_>,
    ) -> Result<Opinion, Failure> {
        let subject = self.subject(step, object, &Observed::default(), console)?;
        let response = function::answer(&subject.world, &subject.step.input, Timestamp::now())
            .map_err(|why| prepare::rejected(subject.fatal(why), console))?;
        if matches!(self, Self::Unknown(_)) && function::is_about_settings(&response) {
            return Ok(Opinion::default());
        }
        let advice = match self {
            Self::Unknown(_) => Vec::new(),
            _ => function::advice(&subject.world, &subject.step.input, &response),
        };
        let warnings = function::warnings_about_revision(&response)
            .chain(function::warnings_about_fields(&response))
            .collect();
        let fatal =
            response.results.into_iter().filter(|result| result.severity() == Severity::Fatal);
        Ok(Opinion { refusals: fatal.map(|result| result.message).collect(), warnings, advice })
    }
}

/// Rejects a document with a fault that the existing environment does not have. The existing
/// environment may have been created under other Settings, and the function in the cluster sees its
/// resources.
pub(super) fn check(
    step: &Step,
    source: &Source,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let Some(rehearsed) = &step.rehearsed else { return Ok(()) };
    let asked = source.opinion(step, rehearsed, console).and_then(|after| {
        let before =
            step.live.as_ref().map(|live| source.opinion(step, live, console)).transpose()?;
        Ok((before.unwrap_or_default(), after))
    });
    let (before, after) = match asked {
        Ok(asked) => asked,
        Err(Failure::Output(error)) => return Err(Failure::Output(error)),
        Err(why) => {
            let title = step.title();
            writeln!(console.err, "note: {title}: not checked against the composition: {why}")?;
            return Ok(());
        }
    };
    let Opinion { refusals, warnings, advice } = after;
    let new: Vec<String> =
        refusals.into_iter().filter(|refusal| !before.refusals.contains(refusal)).collect();
    for warning in warnings {
        writeln!(console.err, "warning: {}: {}", step.title(), harmless_name(&warning))?;
    }
    for advice in advice.iter().filter(|_| new.is_empty()) {
        writeln!(console.err, "note: {}: {advice}", step.title())?;
    }
    if new.is_empty() {
        return Ok(());
    }
    Err(Failure::Fatal { what: step.what(), message: new.join("; also ") })
}

/// The Settings that were read, by name.
type Settings = BTreeMap<String, Option<Value>>;

/// Returns the step of the environment's Composition, with the cluster's Settings. The error says
/// why the step is not known.
async fn source_from_cluster(
    step: &Step,
    all: &[Composition],
    settings: &mut Settings,
    cluster: &Cluster,
) -> Result<Source, String> {
    let spec = step.rehearsed.as_ref().map_or(&Value::Null, |rehearsed| &rehearsed.data["spec"]);
    let policy = spec
        .pointer("/crossplane/compositionUpdatePolicy")
        .or_else(|| spec.get("compositionUpdatePolicy"));
    if step.live.is_some() && policy.is_some_and(|policy| policy == "Manual") {
        return Err(
            "it uses an earlier revision of its Composition (compositionUpdatePolicy: Manual)"
                .to_owned(),
        );
    }
    pipeline_of(&step.kind, spec, all, settings, cluster).await
}

/// The Settings of each API in the cluster. `None` if the cluster does not have the API, or if its
/// Settings cannot be read.
pub(crate) async fn settings_of(
    apis: &[&'static dyn AnyApi],
    access: &cli::Access,
) -> Result<Vec<Option<ApiSettings>>, Failure> {
    let cluster = access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let all = compositions(&cluster).await?.unwrap_or_default();
    let mut read = Settings::default();
    let mut found = Vec::new();
    for api in apis {
        let mut own = None;
        let name = api.info().name;
        let kinds = kinds.all().iter();
        for kind in kinds.filter(|kind| kind.paved_api().is_some_and(|api| api.info().name == name))
        {
            let source = pipeline_of(kind, &Value::Null, &all, &mut read, &cluster).await;
            if let Ok(Source::Cluster(step)) = source {
                own = own.or_else(|| step.settings());
            }
        }
        found.push(own);
    }
    Ok(found)
}

/// The step of the Composition that suits an environment of a kind.
async fn pipeline_of(
    kind: &Kind,
    spec: &Value,
    all: &[Composition],
    settings: &mut Settings,
    cluster: &Cluster,
) -> Result<Source, String> {
    let suiting: Vec<_> = all.iter().filter(|one| one.serves(kind) && one.suits(spec)).collect();
    let [composition] = suiting.as_slice() else {
        let names: Vec<&str> = suiting.iter().map(|one| one.name()).collect();
        let found =
            if names.is_empty() { "no Composition suits".to_owned() } else { names.join(", ") };
        return Err(format!(
            "found {found}; allowed: one Composition. Choose one with --composition"
        ));
    };
    let document = composition.document();
    if !pipeline::has_ours(&document) {
        return Ok(Source::Foreign(format!(
            "Composition {} uses another function",
            composition.name()
        )));
    }
    let mut pipeline = pipeline::Step::from_composition(document).map_err(|why| why.to_string())?;
    if let Some(name) = pipeline.input["settingsFrom"]["name"].as_str() {
        if !settings.contains_key(name) {
            settings.insert(name.to_owned(), read_settings(name, cluster).await?);
        }
        pipeline.configs.extend(settings.get(name).cloned().flatten());
    }
    Ok(Source::Cluster(Box::new(pipeline)))
}

async fn read_settings(name: &str, cluster: &Cluster) -> Result<Option<Value>, String> {
    let config =
        json!({"apiVersion": pipeline::CONFIG_VERSION, "kind": pipeline::CONFIG, "name": name});
    let Some(reference) = Reference::from_value(&config) else { return Ok(None) };
    match reference.read(&cluster.client, None).await {
        Ok(config) => Ok(config.as_ref().map(document)),
        Err(error) if is_denied(&error) => Err(denied("EnvironmentConfigs")),
        Err(error) => Err(cluster.explain(&error, "read the Settings").to_string()),
    }
}

/// The budgets in the Settings of this cluster's Compositions. `None` if the caller may not read
/// them.
pub(crate) async fn budgets(cluster: &Cluster) -> Option<Budget> {
    let all = compositions(cluster).await.ok()??;
    let mut found = None;
    for document in all.iter().map(Composition::document).filter(pipeline::has_ours) {
        let Ok(mut step) = pipeline::Step::from_composition(document) else { continue };
        if let Some(name) = step.input["settingsFrom"]["name"].as_str() {
            step.configs.extend(read_settings(name, cluster).await.ok()?);
        }
        let budget = step.settings().map(|settings| settings.common.budget);
        found = found.filter(|found: &Budget| !found.is_empty()).or(budget);
    }
    found
}

fn denied(what: &str) -> String {
    format!("you may not read {what}. Pass files with --settings and --composition")
}

/// An object as a document.
pub(super) fn document(object: &DynamicObject) -> Value {
    // The value comes from JSON, so it converts back.
    serde_json::to_value(object).unwrap_or_default()
}
