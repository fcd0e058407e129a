//! `paved extend`, `keep`, `stop` and `start`: requests about the lifecycle of environments.

use std::collections::BTreeMap;

use function_paved_road::apis;
use jiff::Timestamp;
use paved_client::action::Verb;
use paved_client::cluster::{Cluster, Found, Kinds, Selector, find, find_each};
use paved_client::environment::{Environment, Price, until};
use paved_client::lifecycle::{Change, Expiry, Refusal, Renewal, Subject, clock_ahead};
use paved_client::wait::Goal;

use crate::ask::agrees;
use crate::cli::{Access, Extend, Keep, Start, Stop};
use crate::failure::Failure;
use crate::list::Place;
use crate::plan::{self, Item, Plan, TRIES, stale, state, unchanged};
use crate::record::{Recorder, log};
use crate::show;
use crate::style::{self, harmless_name};
use crate::{Console, wait};

/// The effect of a stop on all kinds.
const LOST: &str = "Running work is lost.";

/// Renews an environment.
pub(crate) async fn extend(args: &Extend, console: &mut Console<'_>) -> Result<(), Failure> {
    let (cluster, subject) = subject(&args.access, &args.name).await?;
    let expiry = match (args.length, args.until) {
        (Some(length), _) => Expiry::After(length),
        (None, Some(until)) => Expiry::At(until),
        // Without a time, --max is required.
        (None, None) => Expiry::Maximum,
    };
    let title = subject.environment.title();
    let renewal = subject.renew(expiry).map_err(|refusal| refused(&title, refusal))?;
    let Renewal { change, expires_at, capped_by } = renewal;
    let left = until(expires_at, Timestamp::now()).unwrap_or_default();
    if let Some(change) = change {
        send_recorded(&cluster, &subject, change, console).await?;
        writeln!(console.out, "{title} expires at {expires_at}, in {left}")?;
        tell_start(&subject, console)?;
        show::next(&subject.environment, show::View::Folded, console)?;
    } else {
        writeln!(
            console.out,
            "{title} already expires at {expires_at}, in {left}. Nothing was changed"
        )?;
    }
    if let Some(maximum) = capped_by {
        writeln!(console.err, "note: Settings allow at most {maximum} from now")?;
    }
    Ok(())
}

/// Removes the time to live of an environment.
pub(crate) async fn keep(args: &Keep, console: &mut Console<'_>) -> Result<(), Failure> {
    let (cluster, subject) = subject(&args.access, &args.name).await?;
    let title = subject.environment.title();
    match subject.keep().map_err(|refusal| refused(&title, refusal))? {
        Some(change) => {
            send_recorded(&cluster, &subject, change, console).await?;
            writeln!(console.out, "{title} has no time to live any more")?;
            tell_start(&subject, console)?;
            show::next(&subject.environment, show::View::Folded, console)?;
            if let Some(applier) = subject.applier() {
                writeln!(
                    console.err,
                    "warning: {applier} {title} from Git. The next synchronization restores the \
                     ttl, unless you change spec.lifecycle.ttl in Git"
                )?;
            }
        }
        None => writeln!(console.out, "{title} already has spec.lifecycle.ttl: never")?,
    }
    Ok(())
}

/// Stops environments: all that are named, or none; or those of a selection that can be stopped.
/// If the API server rejects one stop, the others are still sent.
pub(crate) async fn stop(args: &Stop, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let now = Timestamp::now();
    let is_selection = args.names.is_empty();
    let subjects: Vec<Subject> = if is_selection {
        let labels = args.select.clone();
        let found = select(&cluster, &kinds, labels, args.all_namespaces, console).await?;
        found.into_iter().map(|one| Subject::new(one, now)).collect()
    } else {
        named(&cluster, &kinds, &args.names, now).await?
    };
    let mut planned = Vec::new();
    let mut failures = Vec::new();
    for subject in &subjects {
        let title = subject.environment.title();
        match subject.stop() {
            Ok(change) => planned.push((subject, change)),
            Err(refusal) if is_selection => {
                writeln!(console.err, "note: not stopped: {title} {refusal}")?;
            }
            Err(refusal) => failures.push(refused(&title, refusal)),
        }
    }
    if !failures.is_empty() && subjects.len() > 1 {
        writeln!(console.err, "note: nothing was stopped")?;
    }
    Failure::combine(failures)?;
    if args.planning.plan || args.planning.confirm.is_some() {
        let stopped = planned.iter().filter(|(_, change)| change.is_some());
        let items = stopped.map(|(subject, _)| item(subject)).collect();
        let plan = Plan::new("stop", &cluster, items);
        let Some(confirmed) = &args.planning.confirm else {
            return plan.print(&args.planning, console);
        };
        plan.check(confirmed)?;
    } else {
        warn(&planned, args.yes, console)?;
    }
    let mut recorder = Recorder::new(&cluster);
    let mut failures = Vec::new();
    for (subject, change) in planned {
        let title = subject.environment.title();
        let Some(change) = change else {
            writeln!(console.out, "{title} is already stopped")?;
            continue;
        };
        let sent = if args.planning.confirm.is_some() {
            stop_planned(&cluster, subject, change).await
        } else {
            send(&cluster, subject, change, console).await
        };
        match sent {
            Ok(found) => {
                writeln!(console.out, "{title} is being stopped")?;
                let line = recorder.accepted(Verb::Stop, &found.object, "requested").await;
                log(&line, console)?;
            }
            Err(failure) => {
                let line = recorder.failed(Verb::Stop, subject.object(), &failure).await;
                log(&line, console)?;
                failures.push(failure);
            }
        }
    }
    if let [name] = args.names.as_slice() {
        let (name, namespace) = (harmless_name(name), &cluster.namespace);
        style::next(&format!("paved start {name} -n {namespace}"), console)?;
    }
    Failure::combine(failures)
}

/// The effects of one stop.
fn item(subject: &Subject) -> Item {
    let seen = &subject.environment;
    let stopped = seen.price.as_ref().and_then(|price| {
        let hourly = price.stopped_hourly.clone()?;
        Some(Price { hourly, ..price.clone() })
    });
    let item = Item::new(subject.kind(), subject.object(), plan::Change::Stop)
        .with_prices(seen.price.as_ref(), stopped.as_ref())
        .with_note(LOST)
        .based_on(state(subject.object()));
    match apis::for_environment_kind(&seen.kind) {
        Some(api) => item.with_note(api.info().when_stopped),
        None => item,
    }
}

/// Stops an environment that has not changed since its plan.
async fn stop_planned(
    cluster: &Cluster,
    subject: &Subject,
    change: Change,
) -> Result<Found, Failure> {
    for _ in 0..TRIES {
        let now = unchanged(cluster, subject.kind(), subject.object()).await?;
        let Some(object) = now else { break };
        let found = Found { kind: subject.kind().clone(), object, listed: None };
        let subject = Subject::new(found, Timestamp::now());
        if let Some(found) = subject.send_to_version(cluster, change).await? {
            return Ok(found);
        }
    }
    Err(stale(&format!("{} was not stopped", subject.environment.title())))
}

/// Prints the effects of a stop, and asks on a terminal.
fn warn(
    planned: &[(&Subject, Option<Change>)],
    is_agreed: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let stopped = planned.iter().filter(|(_, change)| change.is_some());
    let subjects: Vec<&Subject> = stopped.map(|(subject, _)| *subject).collect();
    let kinds: BTreeMap<&str, &str> = subjects
        .iter()
        .map(|subject| {
            let kind = subject.environment.kind.as_str();
            let api = apis::for_environment_kind(kind);
            (kind, api.map(|api| api.info().when_stopped).unwrap_or_default())
        })
        .collect();
    for (kind, effect) in &kinds {
        writeln!(console.err, "warning: {kind}: {LOST} {effect}")?;
    }
    if is_agreed || subjects.is_empty() || console.answer.is_none() {
        return Ok(());
    }
    let titles: Vec<String> = subjects.iter().map(|one| one.environment.title()).collect();
    let question = format!("Stop {}?", titles.join(", "));
    let unanswered = "no answer, so nothing was stopped. Use --yes to stop without a question";
    if agrees(&question, unanswered, console)? {
        return Ok(());
    }
    Err(Failure::Usage("cancelled. Nothing was stopped".to_owned()))
}

/// Starts an environment.
pub(crate) async fn start(args: &Start, console: &mut Console<'_>) -> Result<(), Failure> {
    let (cluster, subject) = subject(&args.access, &args.name).await?;
    let title = subject.environment.title();
    let change = subject.start().map_err(|refusal| refused(&title, refusal))?;
    let found = send_recorded(&cluster, &subject, change, console).await?;
    if subject.is_running() {
        writeln!(console.out, "{title} already runs. The start renews its time to live")?;
    } else {
        writeln!(console.out, "{title} is being started")?;
    }
    if args.wait {
        let found = vec![found.read(|object| Environment::from_object(&object))];
        wait::until(&cluster, found, &Goal::Running, args.patience, console).await?;
        return Ok(());
    }
    let Environment { name, namespace, .. } = &subject.environment;
    style::next(&format!("paved start {name} -n {namespace} --wait"), console)?;
    Ok(())
}

/// Starts a stopped environment, and returns it.
pub(crate) async fn start_now(
    cluster: &Cluster,
    found: Found,
    console: &mut Console<'_>,
) -> Result<Found, Failure> {
    let subject = Subject::new(found, Timestamp::now());
    let title = subject.environment.title();
    let change = subject.start().map_err(|refusal| refused(&title, refusal))?;
    send_recorded(cluster, &subject, change, console).await
}

/// Finds the environment of a command.
async fn subject(access: &Access, name: &str) -> Result<(Cluster, Subject), Failure> {
    let cluster = access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let found = find(&cluster, &kinds, name).await?;
    Ok((cluster, Subject::new(found, Timestamp::now())))
}

/// Finds all named environments. Reports all names that do not exist.
async fn named(
    cluster: &Cluster,
    kinds: &Kinds,
    names: &[String],
    now: Timestamp,
) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    let mut failures = Vec::new();
    for one in find_each(cluster, kinds, names, |object| object).await? {
        match one {
            Ok(found) => subjects.push(Subject::new(found, now)),
            Err(failure) => failures.push(failure.into()),
        }
    }
    Failure::combine(failures).map(|()| subjects)
}

/// Finds the environments with these labels, or all.
async fn select(
    cluster: &Cluster,
    kinds: &Kinds,
    labels: Option<Selector>,
    all_namespaces: bool,
    console: &mut Console<'_>,
) -> Result<Vec<Found>, Failure> {
    let place = Place {
        cluster: cluster.clone(),
        kinds: kinds.all().to_vec(),
        namespace: (!all_namespaces).then(|| cluster.namespace.clone()),
        labels,
        expiring: None,
    };
    let form = |kind: &_, object| Found { kind: Clone::clone(kind), object, listed: None };
    let found = place.all(console, form).await?;
    if found.is_empty() {
        writeln!(console.err, "{}", place.nothing())?;
    }
    Ok(found)
}

/// Sends a change, and records it.
async fn send_recorded(
    cluster: &Cluster,
    subject: &Subject,
    change: Change,
    console: &mut Console<'_>,
) -> Result<Found, Failure> {
    let verb = match change {
        Change::Renew { .. } => Verb::Extend,
        Change::Keep => Verb::Keep,
        Change::Start(_) => Verb::Start,
        Change::Stop(_) => Verb::Stop,
    };
    let mut recorder = Recorder::new(cluster);
    match send(cluster, subject, change, console).await {
        Ok(found) => {
            log(&recorder.accepted(verb, &found.object, "requested").await, console)?;
            Ok(found)
        }
        Err(failure) => {
            log(&recorder.failed(verb, subject.object(), &failure).await, console)?;
            Err(failure)
        }
    }
}

/// Sends a change, and warns if the function ignores it.
async fn send(
    cluster: &Cluster,
    subject: &Subject,
    change: Change,
    console: &mut Console<'_>,
) -> Result<Found, Failure> {
    let found = subject.send(cluster, change).await?;
    let is_dated = change != Change::Keep;
    if let Some(ahead) = clock_ahead(&found.object, Timestamp::now()).filter(|_| is_dated) {
        writeln!(
            console.err,
            "warning: the clock of this machine is {ahead} ahead of the cluster's. The request is \
             ignored until its time is at most five minutes ahead"
        )?;
    }
    Ok(found)
}

/// Says that an expired environment starts with its renewal.
fn tell_start(subject: &Subject, console: &mut Console<'_>) -> Result<(), Failure> {
    if subject.is_started_by_renewal() {
        writeln!(console.out, "{} is being started", subject.environment.title())?;
    }
    Ok(())
}

/// The failure of a command with a request that would have no effect.
fn refused(title: &str, refusal: Refusal) -> Failure {
    match refusal {
        Refusal::CannotStop(_) | Refusal::Maximum(_) => {
            Failure::Fatal { what: title.to_owned(), message: refusal.to_string() }
        }
        _ => Failure::Usage(format!("{title} {refusal}")),
    }
}
