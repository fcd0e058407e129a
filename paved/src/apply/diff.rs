//! What changes: in the claim, as the API server would keep it, and in what is composed of it, by a preview.

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use simulator::schema::Violation;

use super::plan::Step;
use crate::Console;
use crate::changes::between;
use crate::cli::{Apply, Sources};
use crate::cluster::{Cluster, Reference, compositions, is_denied};
use crate::composed;
use crate::documents::{tidy, yaml};
use crate::failure::Failure;
use crate::paint::{BOLD, DIM, GREEN, YELLOW};
use crate::subject::{Stored, Subject, step as pipeline};

/// Prints the changes of a step; nothing where there are none. What cannot be compared is said: that ends nothing.
pub(super) async fn print(
    step: &Step,
    args: &Apply,
    cluster: &Cluster,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let before = step.live.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let after = step.rehearsed.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let changes = between(&step.title(), &before, &after);
    if changes.is_empty() {
        return Ok(());
    }
    write!(console.out, "{changes}")?;
    match composed(step, args, cluster, console).await {
        Ok(()) => Ok(()),
        Err(Failure::Output(error)) => Err(Failure::Output(error)),
        Err(refused @ Failure::Fatal { .. }) => {
            writeln!(console.err, "{YELLOW}warning{YELLOW:#}: the composition will refuse {refused}")?;
            Ok(())
        }
        Err(why) => {
            writeln!(console.err, "note: {}: what it is composed of is not compared: {why}", step.title())?;
            Ok(())
        }
    }
}

/// An object without status and bookkeeping: what people write.
fn text(object: &DynamicObject) -> Result<String, Failure> {
    let mut value = tidy(object);
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for bookkeeping in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            metadata.remove(bookkeeping);
        }
    }
    yaml(&value)
}

/// Of an environment that exists, what changes in its parts once they are ready; of a new one, which parts it will have.
/// Clouds are simulated: that takes no rights beyond the claim.
async fn composed(
    step: &Step,
    args: &Apply,
    cluster: &Cluster,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let Some(rehearsed) = &step.rehearsed else { return Ok(()) };
    let title = step.title();
    let files = Sources { settings: args.settings.clone(), composition: args.composition.clone() };
    let source = if files.settings.is_some() || files.composition.is_some() {
        Source::Files(files)
    } else {
        Source::Cluster(of_cluster(step, rehearsed, cluster).await?)
    };
    let now = Timestamp::now();
    let Some(live) = &step.live else {
        let parts = composed::parts(&source.subject(step, rehearsed, &[], console)?, now, console)?;
        writeln!(console.out, "{BOLD}{title}{BOLD:#}: {} parts", parts.len())?;
        for (slot, kind) in parts {
            writeln!(console.out, "{GREEN}+ {slot}{GREEN:#} {DIM}{kind}{DIM:#}")?;
        }
        return Ok(());
    };
    let mut before = source.subject(step, live, &[], console)?;
    composed::settle(&mut before, now, console)?;
    let mut after = source.subject(step, rehearsed, &documents(&before), console)?;
    composed::settle(&mut after, now, console)?;
    let (before, after) = (composed::slots(&before, now, console)?, composed::slots(&after, now, console)?);
    match composed::compare(&before, &after) {
        None => writeln!(console.out, "{BOLD}{title}{BOLD:#}: nothing changes in its parts")?,
        Some(told) => writeln!(console.out, "{BOLD}{title}{BOLD:#}: of its parts {told}")?,
    }
    Ok(())
}

/// Where Composition and Settings come from.
enum Source {
    Files(Sources),
    Cluster(pipeline::Step),
}

impl Source {
    /// The environment as `object` has it, among what is observed.
    fn subject(
        &self,
        step: &Step,
        object: &DynamicObject,
        seen: &[Value],
        console: &mut Console<'_>,
    ) -> Result<Subject, Failure> {
        // The API server took it: where we would not, its XRDs are not ours.
        let other = |violations: &[Violation]| {
            let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
            Failure::Usage(format!("this cluster's API is of another version: {}", told.join(", ")))
        };
        let stored = Stored::in_flavour(&document(object), seen, Some(step.kind.flavour()))
            .map_err(|violation| other(&[violation]))?;
        if !stored.violations.is_empty() {
            return Err(other(&stored.violations));
        }
        let composite = stored.composite(seen).map_err(|violations| other(&violations))?;
        let pipeline = match self {
            Self::Files(sources) => pipeline::find(&stored.target, &step.file, sources, &[], console)?,
            Self::Cluster(pipeline) => pipeline.clone(),
        };
        Ok(stored.among(composite, pipeline, step.title()))
    }
}

/// The step of the Composition that the environment asks for, with the cluster's Settings.
async fn of_cluster(
    step: &Step,
    rehearsed: &DynamicObject,
    cluster: &Cluster,
) -> Result<pipeline::Step, Failure> {
    let denied = |what: &str| {
        Failure::Usage(format!("you may not read {what}; --settings and --composition take files instead"))
    };
    let all = compositions(cluster).await?.ok_or_else(|| denied("Compositions"))?;
    let spec = &rehearsed.data["spec"];
    let suiting: Vec<_> = all.iter().filter(|one| one.serves(&step.kind) && one.suits(spec)).collect();
    let [composition] = suiting.as_slice() else {
        let names: Vec<&str> = suiting.iter().map(|one| one.name()).collect();
        let found = if names.is_empty() { "no Composition suits".to_owned() } else { names.join(", ") };
        return Err(Failure::Usage(format!("one Composition is needed; found: {found}")));
    };
    let mut pipeline = pipeline::Step::of(composition.document())?;
    let name = &pipeline.input["settingsFrom"]["name"];
    let config = json!({"apiVersion": pipeline::CONFIG_VERSION, "kind": pipeline::CONFIG, "name": name});
    if let Some(reference) = Reference::of(&config) {
        match reference.read(&cluster.client, None).await {
            Ok(config) => pipeline.configs.extend(config.iter().map(document)),
            Err(error) if is_denied(&error) => return Err(denied("EnvironmentConfigs")),
            Err(error) => return Err(cluster.explain(&error, "read the Settings")),
        }
    }
    Ok(pipeline)
}

/// All that is there, as files would have it.
fn documents(subject: &Subject) -> Vec<Value> {
    let world = &subject.world;
    std::iter::once(world.composite())
        .chain(world.resources().values())
        .chain(world.secrets())
        .cloned()
        .collect()
}

fn document(object: &DynamicObject) -> Value {
    // It came out of JSON: it goes back.
    serde_json::to_value(object).unwrap_or_default()
}
