//! `paved apply`: applies claims from files to the cluster, all of them or none.

mod budget;
pub(crate) mod composition;
mod diff;
mod owner;
mod plan;
mod planned;
mod secrets;

use anstyle::Style;
use crossplane::spec::WRITTEN;
use kube::api::DynamicObject;
use paved_client::action::Verb;
use paved_client::apply::{self, Request, kept_by_kubectl};
use paved_client::cluster::{Cluster, Found, Kinds};
use paved_client::environment::Environment;
use paved_client::wait::Goal;
use serde_json::{Map, Value, json};

use crate::Console;
use crate::cli::Apply;
use crate::failure::Failure;
use crate::files::{Document, Inputs};
use crate::plan::{Plan, TRIES, stale, unchanged};
use crate::record::{Recorder, log};
use crate::signals::{self, Stop};
use crate::style::{self, BOLD, GREEN, YELLOW};
use crate::{outputs, wait};
use composition::Source;
pub(crate) use composition::budgets;
use owner::Caller;
use plan::Step;

/// Asks the API server and the composition about every document first. Applies the documents only
/// if both accept all of them.
pub(crate) async fn run(args: &Apply, console: &mut Console<'_>) -> Result<(), Failure> {
    if !args.wait && args.outputs.output_file.is_some() {
        return Err(Failure::Usage(
            "--output-file needs --wait, because the file is written when the environment is ready"
                .to_owned(),
        ));
    }
    if args.no_validate && !args.diff && (args.settings.is_some() || args.composition.is_some()) {
        let why = "--settings and --composition have no effect with --no-validate. Remove \
                   --no-validate, or add --diff";
        return Err(Failure::Usage(why.to_owned()));
    }
    if args.wait {
        outputs::prepare(&args.outputs)?;
    }
    let inputs = Inputs::default();
    let documents = plan::documents(&args.files, &inputs, console)?;
    let planned = signals::unless_asked(
        Box::pin(planned(args, documents, &inputs, console)),
        "nothing was applied",
    )
    .await?;
    let Some((cluster, steps)) = planned else { return Ok(()) };
    let applied = perform(&cluster, &steps, args, console).await?;
    if !args.wait {
        return hint(&applied, console);
    }
    let waiting = wait::until(&cluster, applied, &Goal::Ready, args.patience, console);
    let environments = signals::unless_asked(Box::pin(waiting), "everything was applied").await?;
    outputs::write(&args.outputs, &environments)
}

/// The documents to apply, once the API server and the composition accept all of them. Empty for a
/// dry run.
async fn planned(
    args: &Apply,
    documents: Vec<Document>,
    inputs: &Inputs,
    console: &mut Console<'_>,
) -> Result<Option<(Cluster, Vec<Step>)>, Failure> {
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let mut steps =
        plan::steps(documents, &kinds, &cluster, args.access.namespace.as_deref(), console)?;
    if args.wait {
        let all = steps.iter().map(|step| [step.kind.name(), &*step.namespace, &*step.name]);
        outputs::tell_apart(&args.outputs, all)?;
    }
    rehearse(&cluster, &mut steps, args.force_conflicts).await?;
    secrets::check(&cluster, &kinds, &steps).await?;
    for step in steps.iter().filter(|step| !step.dropped.is_empty()) {
        let (what, dropped) = (step.what(), step.dropped.join(", "));
        let reason = "requests of another environment, which this one does not obey";
        writeln!(console.err, "note: {what}: not applied: {dropped} ({reason})")?;
    }
    let has_plan = args.planning.plan || args.planning.confirm.is_some();
    let mut sources = Vec::new();
    if args.diff || has_plan || !args.no_validate {
        sources = Source::for_steps(&steps, args, inputs, &cluster).await;
        for (step, source) in steps.iter().zip(&sources).filter(|_| args.diff) {
            diff::print(step, source, console)?;
        }
        if !args.no_validate {
            validate(&steps, &sources, console)?;
            budget::check(&mut steps, &sources, &kinds, &cluster, console).await?;
        }
    }
    if has_plan {
        let plan = Plan::new("apply", &cluster, planned::items(&steps, &sources, args, console)?);
        let Some(confirmed) = &args.planning.confirm else {
            plan.print(&args.planning, console)?;
            return Ok(None);
        };
        plan.check(confirmed)?;
        return Ok(Some((cluster, steps)));
    }
    if args.dry_run.is_some() {
        for step in &steps {
            tell(step, step.rehearsed.as_ref(), " (server dry run)", console)?;
            if let Some(price) = &step.price {
                writeln!(console.out, "  price: {price}")?;
            }
        }
        return Ok(None);
    }
    planned::announce(&steps, args, console)?;
    Ok(Some((cluster, steps)))
}

/// Reads the existing objects, and lets the API server check all documents in a dry run. All
/// rejections are reported at once.
async fn rehearse(cluster: &Cluster, steps: &mut [Step], force: bool) -> Result<(), Failure> {
    let mut failures = Vec::new();
    let mut caller = Caller::default();
    for step in steps {
        let api = step.kind.api(&cluster.client, Some(&step.namespace));
        let act = || format!("read {}", step.title());
        step.live =
            api.get_opt(&step.name).await.map_err(|error| cluster.explain(&error, &act()))?;
        step.drop_requests();
        caller.mark(step, cluster).await;
        match attempt(cluster, step, force, true).await {
            Ok(rehearsed) => step.rehearsed = Some(rehearsed),
            Err(failure @ Failure::NoAccess { .. }) => return Err(failure),
            Err(failure) => failures.push(failure),
        }
    }
    Failure::combine(failures)
}

/// Lets the function in this program check all documents. All rejections are reported at once.
fn validate(steps: &[Step], sources: &[Source], console: &mut Console<'_>) -> Result<(), Failure> {
    let unknown = sources.iter().find_map(|source| match source {
        Source::Unknown(why) => Some(why),
        _ => None,
    });
    if let Some(why) = unknown {
        let note = "no Settings found, so paved skipped the checks that need them and the check of \
             budgets";
        writeln!(console.err, "note: {note} ({why})")?;
    }
    let checks =
        steps.iter().zip(sources).map(|(step, source)| composition::check(step, source, console));
    let failures: Vec<Failure> = checks.filter_map(Result::err).collect();
    if !failures.is_empty() {
        let hint = "nothing is applied. If the function in the cluster is newer than paved, use \
             --no-validate";
        writeln!(console.err, "note: {hint}")?;
    }
    Failure::combine(failures)
}

/// Sends a step to the API server, and returns the answer.
async fn attempt(
    cluster: &Cluster,
    step: &Step,
    force: bool,
    dry_run: bool,
) -> Result<DynamicObject, Failure> {
    let what = step.what();
    let request = Request { dry_run, ..request(step, &what, force) };
    Ok(request.send(cluster).await?)
}

/// The request of a step.
fn request<'s>(step: &'s Step, what: &'s str, force: bool) -> Request<'s> {
    Request {
        kind: &step.kind,
        namespace: &step.namespace,
        name: &step.name,
        object: &step.object,
        live: step.live.as_ref(),
        what,
        force,
        dry_run: false,
    }
}

/// Sends a confirmed step. Fails if the environment has changed since the plan. A write of a
/// provider or of Crossplane is not such a change, so the request is sent again.
async fn confirmed(cluster: &Cluster, step: &Step, force: bool) -> Result<DynamicObject, Failure> {
    let stale = || Err(stale(&format!("{} was not applied", step.title())));
    let Some(live) = &step.live else {
        let api = step.kind.api(&cluster.client, Some(&step.namespace));
        let act = || format!("read {}", step.title());
        let found = api.get_opt(&step.name).await;
        let found = found.map_err(|error| cluster.explain(&error, &act()))?;
        return if found.is_some() { stale() } else { attempt(cluster, step, force, false).await };
    };
    for _ in 0..TRIES {
        let Some(now) = unchanged(cluster, &step.kind, live).await? else { return stale() };
        let what = step.what();
        let version = now.metadata.resource_version.clone().unwrap_or_default();
        let request = request(step, &what, force);
        if let Some(applied) = request.send_to_version(&version, cluster).await? {
            return Ok(applied);
        }
    }
    stale()
}

/// Prints the next command.
fn hint(applied: &[Found<Environment>], console: &mut Console<'_>) -> Result<(), Failure> {
    let names: Vec<&str> = applied.iter().map(|one| one.object.name.as_str()).collect();
    let [first, rest @ ..] = applied else { return Ok(()) };
    let is_same = rest.iter().all(|one| one.object.namespace == first.object.namespace);
    if is_same {
        let namespace = &first.object.namespace;
        style::next(&format!("paved wait {} -n {namespace}", names.join(" ")), console)?;
    }
    Ok(())
}

/// Applies all documents. After Ctrl-C, the command completes the current document and ends.
async fn perform(
    cluster: &Cluster,
    steps: &[Step],
    args: &Apply,
    console: &mut Console<'_>,
) -> Result<Vec<Found<Environment>>, Failure> {
    let is_confirmed = args.planning.confirm.is_some();
    let write = async |step: &Step| {
        if is_confirmed {
            confirmed(cluster, step, args.force_conflicts).await
        } else {
            attempt(cluster, step, args.force_conflicts, false).await
        }
    };
    let mut recorder = Recorder::new(cluster);
    let mut stop = Stop::listen();
    let mut applied = Vec::new();
    for step in steps {
        let titles = |steps: &[Step]| steps.iter().map(Step::title).collect::<Vec<_>>().join(", ");
        let left = &steps[applied.len()..];
        let act = async {
            let sent = write(step).await;
            let verb = if step.live.is_none() { Verb::Create } else { Verb::Change };
            let line = match (&sent, &step.rehearsed) {
                (Ok(object), _) => {
                    let (word, _) = outcome(step, Some(object));
                    recorder.accepted(verb, object, word).await
                }
                (Err(failure), Some(object)) => recorder.failed(verb, object, failure).await,
                (Err(_), None) => String::new(),
            };
            (sent, line)
        };
        let sent = match stop.finish(act, "the current request", console).await? {
            Some((sent, line)) => {
                log(&line, console)?;
                Some(sent)
            }
            None => None,
        };
        match sent {
            None => {
                let told = format!(
                    "could not confirm that {} was applied. Check it with paved status",
                    step.title()
                );
                let rest = titles(&left[1..]);
                let rest = if rest.is_empty() { rest } else { format!("; not applied: {rest}") };
                return Err(Failure::Interrupted(told + &rest));
            }
            Some(Ok(object)) => {
                tell(step, Some(&object), "", console)?;
                let object = Environment::applied(&object, step.live.as_ref());
                applied.push(Found { kind: step.kind.clone(), object, listed: None });
            }
            Some(Err(failure)) => {
                writeln!(console.err, "note: not applied: {}", titles(left))?;
                return Err(failure);
            }
        }
    }
    if stop.is_asked {
        return Err(Failure::Interrupted("everything was applied".to_owned()));
    }
    Ok(applied)
}

/// The past or planned change in one word, and its style.
fn outcome(step: &Step, after: Option<&DynamicObject>) -> (&'static str, Style) {
    let own = |object: &DynamicObject| own_fields(object, &step.object);
    let keeps_others = after.is_some_and(|after| !kept_by_kubectl(&step.object, after).is_empty());
    match (&step.live, after) {
        (None, _) => ("created", GREEN),
        (Some(live), Some(after)) if own(live) == own(after) => {
            (if keeps_others { "applied, without a change" } else { "unchanged" }, BOLD)
        }
        _ => ("configured", YELLOW),
    }
}

/// Prints the past or planned change: created, configured or unchanged.
fn tell(
    step: &Step,
    after: Option<&DynamicObject>,
    how: &str,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let others = after.map(|after| kept_by_kubectl(&step.object, after)).unwrap_or_default();
    let (word, style) = outcome(step, after);
    writeln!(console.out, "{} {style}{word}{style:#}{how}", step.title())?;
    if step.live.as_ref().is_some_and(apply::is_taken_over) {
        let title = step.title();
        writeln!(console.err, "note: paved takes over the fields of kubectl apply in {title}")?;
    }
    if !others.is_empty() {
        let others: Vec<String> =
            others.iter().map(|(field, manager)| format!("{field} ({manager})")).collect();
        writeln!(
            console.err,
            "warning: {} keeps fields that are not in the file: {}. To remove them, use kubectl edit",
            step.title(),
            others.join(", ")
        )?;
    }
    if step.live.as_ref().is_some_and(|live| live.metadata.deletion_timestamp.is_some()) {
        writeln!(
            console.err,
            "warning: {} is being deleted, and the change does not stop the deletion",
            step.title()
        )?;
    }
    Ok(())
}

/// The spec, labels and annotations of an object, without the fields that Crossplane writes at any
/// time. The fields in the file count.
fn own_fields(object: &DynamicObject, file: &Value) -> Value {
    let metadata = &object.metadata;
    let mut annotations = metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| !apply::is_bookkeeping(name));
    let mut labels = metadata.labels.clone().unwrap_or_default();
    let in_file = &file["metadata"]["labels"];
    labels.retain(|name, _| !name.starts_with("crossplane.io/") || !in_file[name].is_null());
    let mut spec = object.data["spec"].clone();
    remove_written(&mut spec, &file["spec"]);
    if let Some(section) = spec.get_mut("crossplane") {
        remove_written(section, &file["spec"]["crossplane"]);
        if section.as_object().is_some_and(Map::is_empty)
            && let Some(fields) = spec.as_object_mut()
        {
            fields.remove("crossplane");
        }
    }
    json!({"spec": spec, "labels": labels, "annotations": annotations})
}

/// Removes the fields that Crossplane writes into a spec, unless the file has them.
fn remove_written(spec: &mut Value, file: &Value) {
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !WRITTEN.contains(&name.as_str()) || !file[name].is_null());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn object(fields: Value) -> DynamicObject {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn fields_that_crossplane_writes_are_no_change() {
        let file = json!({
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "StockPool",
            "metadata": {"name": "pool", "labels": {"team": "vision"}},
            "spec": {"size": 2, "compositionRef": {"name": "chosen"}},
        });
        let before = object(file.clone());
        let mut written = file.clone();
        written["metadata"]["labels"]["crossplane.io/composite"] = json!("pool-x");
        written["metadata"]["uid"] = json!("1");
        written["spec"]["resourceRef"] = json!({"name": "pool-x"});
        written["spec"]["crossplane"] =
            json!({"resourceRefs": [{"name": "a"}], "compositionUpdatePolicy": "Automatic"});
        let unchanged = own_fields(&before, &file) == own_fields(&object(written.clone()), &file);
        assert!(unchanged, "{written}");
        for path in ["/spec/size", "/spec/compositionRef", "/metadata/labels/team"] {
            let mut changed = written.clone();
            *changed.pointer_mut(path).unwrap() = json!("another");
            let unchanged = own_fields(&before, &file) == own_fields(&object(changed), &file);
            assert!(!unchanged, "{path}");
        }
    }
}
