//! `paved delete`: deletes environments with all their resources.

mod namespace;
mod plan;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use paved_client::action::Verb;
use paved_client::cluster::{Cluster, Found, Kinds, Served, find_each};
use paved_client::delete::{Parts, Remaining, delete, delete_unchanged};
use paved_client::environment::{Environment, age, spell};
use paved_client::wait::WatchSet;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::Console;
use crate::ask::agrees;
use crate::cli::Delete;
use crate::failure::Failure;
use crate::live_view::LiveView;
use crate::plan::{Change, Item, Plan, TRIES, stale, state, unchanged};
use crate::record::{Recorder, log};
use crate::signals::{self, Stop};
use crate::style::{self, BOLD, Leaf, harmless_name, one_line};

/// Interval of the reads during a deletion. Functions do not run then, so the status does not show
/// the progress.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// The default time limit of a wait.
const TIMEOUT: Duration = Duration::from_mins(30);

/// Time limit for one read of one environment's resources.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Asks for confirmation and deletes. Without a terminal to ask at and without `--yes`, deletes
/// no environment. With `--wait`, waits until all environments are deleted. Without a name, deletes
/// a namespace.
pub(crate) async fn run(args: &Delete, console: &mut Console<'_>) -> Result<(), Failure> {
    let longest = args.timeout.unwrap_or(TIMEOUT);
    if args.names.is_empty() {
        return namespace::run(args, longest, console).await;
    }
    if args.timeout.is_some() && !args.wait {
        let message = "--timeout: found without --wait; allowed: with --wait, or for a namespace";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(Some(namespace)) = &args.yes {
        return Err(Failure::Usage(format!(
            "--yes: found the namespace {namespace} and names of environments; allowed: one of \
             them. Nothing was deleted"
        )));
    }
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for one in find_each(&cluster, &kinds, &args.names, |object| object).await? {
        match one {
            Ok(one) => found.push(one),
            Err(paved_client::Failure::Absent(message)) if args.ignore_not_found => {
                writeln!(console.out, "{message}")?;
            }
            Err(failure) => failures.push(failure.into()),
        }
    }
    Failure::combine(failures)?;
    if found.is_empty() {
        return Ok(());
    }
    if args.planning.plan || args.planning.confirm.is_some() {
        let plan = Plan::new("delete", &cluster, found.iter().map(item).collect());
        let Some(confirmed) = &args.planning.confirm else {
            return plan.print(&args.planning, console);
        };
        plan.check(confirmed)?;
    } else if !(args.yes.is_some() || agreed(&found, console)?) {
        return Err(Failure::Usage("cancelled. Nothing was deleted".to_owned()));
    }
    let served = Served::default();
    let mut parts = Vec::new();
    for one in found.iter().filter(|_| args.wait) {
        parts.push(find_parts(&cluster, &served, one).await?);
    }
    delete_all(&cluster, &found, args.planning.confirm.is_some(), console).await?;
    if !args.wait {
        kept(found.iter().map(|one| Environment::from_object(&one.object)), console)?;
        let names: Vec<String> = args.names.iter().map(|name| harmless_name(name)).collect();
        let namespace = &cluster.namespace;
        let next = format!("paved wait {} -n {namespace} --for=deleted", names.join(" "));
        return Ok(style::next(&next, console)?);
    }
    let gone = until_gone(&cluster, found, parts, longest, console);
    signals::unless_asked(Box::pin(gone), "the deletion continues in the cluster").await
}

/// Finds the resources of an environment before its deletion.
async fn find_parts(cluster: &Cluster, served: &Served, one: &Found) -> Result<Parts, Failure> {
    let late = |_| {
        let title = Environment::from_object(&one.object).title();
        let after = spell(READ_TIMEOUT);
        Failure::TimedOut(format!(
            "{title}: could not load its resources within {after}. Nothing was deleted. Try again, \
             or use a longer --timeout"
        ))
    };
    timeout(READ_TIMEOUT, Parts::find(cluster, served, one))
        .await
        .map_err(late)?
        .map_err(Into::into)
}

/// The effects of one deletion.
fn item(one: &Found) -> Item {
    let seen = Environment::from_object(&one.object);
    let plan = seen.on_deletion.clone().unwrap_or_default();
    let basis =
        json!({"state": state(&one.object), "plan": one.object.data["status"]["onDeletion"]});
    let item = Item::new(&one.kind, &one.object, Change::Delete)
        .with_prices(seen.price.as_ref(), None)
        .with_deletions(&plan.deletes, &plan.keeps)
        .based_on(basis);
    match (&seen.on_deletion, seen.deleted) {
        (_, Some(_)) => item.with_note("is being deleted already"),
        (None, _) => item.with_note("its template lists the kept resources"),
        _ => item,
    }
}

/// Deletes an environment that has not changed since its plan.
async fn delete_planned(cluster: &Cluster, one: &Found) -> Result<(), Failure> {
    let title = Environment::from_object(&one.object).title();
    for _ in 0..TRIES {
        let Some(object) = unchanged(cluster, &one.kind, &one.object).await? else { break };
        let found = Found { kind: one.kind.clone(), object, listed: None };
        if delete_unchanged(cluster, &found).await? {
            return Ok(());
        }
    }
    Err(stale(&format!("{title} was not deleted")))
}

/// Deletes the environments one after another, if they are still as planned. A signal ends the command between two environments.
async fn delete_all(
    cluster: &Cluster,
    found: &[Found],
    is_planned: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let request = async |one: &Found| {
        if is_planned {
            delete_planned(cluster, one).await
        } else {
            Ok(delete(cluster, one).await?)
        }
    };
    let mut recorder = Recorder::new(cluster);
    let titles = |found: &[Found]| {
        let titles: Vec<_> =
            found.iter().map(|one| Environment::from_object(&one.object).title()).collect();
        titles.join(", ")
    };
    let mut stop = Stop::listen();
    for (done, one) in found.iter().enumerate() {
        let (title, left) =
            (Environment::from_object(&one.object).title(), titles(&found[done + 1..]));
        let act = async {
            let sent = request(one).await;
            let line = match &sent {
                Ok(()) => recorder.accepted(Verb::Delete, &one.object, "requested").await,
                Err(failure) => recorder.failed(Verb::Delete, &one.object, failure).await,
            };
            (sent, line)
        };
        let deleted = stop.finish(act, &format!("the request for {title}"), console).await?;
        let deleted = match deleted {
            Some((sent, line)) => {
                log(&line, console)?;
                Some(sent)
            }
            None => None,
        };
        let told = match deleted {
            Some(Ok(())) => {
                writeln!(console.out, "{title} is being deleted")?;
                None
            }
            Some(Err(failure)) => {
                writeln!(console.err, "note: not deleted: {}", titles(&found[done..]))?;
                return Err(failure);
            }
            None => Some(format!(
                "could not confirm that {title} is being deleted. Check it with \
                 paved status"
            )),
        };
        if stop.is_asked {
            let left = (!left.is_empty()).then(|| format!("not deleted: {left}"));
            let told: Vec<String> = told.into_iter().chain(left).collect();
            let all = || "the deletion continues in the cluster".to_owned();
            return Err(Failure::Interrupted(if told.is_empty() {
                all()
            } else {
                told.join("; ")
            }));
        }
    }
    Ok(())
}

/// Prints the resources that remain after the deletion.
fn kept(
    deleted: impl Iterator<Item = Environment>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    for line in deleted.filter_map(|environment| plan::result(&environment)) {
        writeln!(console.out, "{line}")?;
    }
    Ok(())
}

/// A deletion also deletes resources in the cloud, so the user must confirm it on a terminal.
fn agreed(found: &[Found], console: &mut Console<'_>) -> Result<bool, Failure> {
    for one in found {
        let seen = Environment::from_object(&one.object);
        writeln!(console.err, "{BOLD}{}{BOLD:#}", seen.title())?;
        for line in plan::question(&seen) {
            writeln!(console.err, "  {line}")?;
        }
    }
    let unanswered = "no terminal to ask for confirmation. Use --yes to delete without a question. \
                      Nothing was deleted";
    agrees("Delete?", unanswered, console)
}

async fn until_gone(
    cluster: &Cluster,
    found: Vec<Found>,
    mut parts: Vec<Parts>,
    longest: Duration,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let found = found.into_iter().map(|one| one.read(|object| Environment::from_object(&object)));
    let mut watched = WatchSet::new(found.collect());
    let mut events = watched.events(cluster);
    // Reads run beside the other events, so that a late or missing answer does not delay them.
    let mut looking = pin!(looked(parts.clone(), Duration::ZERO));
    let mut show = Show::default();
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            seen = &mut looking => {
                parts = seen;
                looking.set(looked(parts.clone(), POLL_INTERVAL));
            }
            Some(changes) = events.next() => {
                for note in watched.take(changes, cluster)? {
                    show.say(&note, console)?;
                }
            }
        }
        let left = || watched.seen.iter().zip(&parts).filter(|(seen, _)| !seen.gone);
        show.draw(left().map(|(seen, parts)| (&*seen.environment, parts)), console)?;
        if left().next().is_none() {
            let names: Vec<String> =
                watched.seen.iter().map(|seen| seen.environment.title()).collect();
            show.leave();
            writeln!(console.out, "{} deleted after {}", are(&names), spell(begin.elapsed()))?;
            return kept(
                watched.seen.iter().map(|seen| Environment::clone(&seen.environment)),
                console,
            );
        }
        if begin.elapsed() >= longest {
            let told: Vec<String> = left()
                .map(|(seen, parts)| format!("{}: {}", seen.environment.title(), parts.told()))
                .collect();
            return Err(Failure::TimedOut(format!(
                "still not deleted after {}: {}",
                spell(longest),
                told.join("; ")
            )));
        }
    }
}

/// Reads the resources again after a pause.
async fn looked(mut parts: Vec<Parts>, pause: Duration) -> Vec<Parts> {
    sleep(pause).await;
    for one in &mut parts {
        // After a timeout, the earlier result stays.
        _ = timeout(READ_TIMEOUT, one.look()).await;
    }
    parts
}

/// The line of a remaining resource.
fn leaf(left: &Remaining<'_>, now: Timestamp) -> Leaf {
    let state = if left.deleted.is_some() { "Deleting" } else { "There" };
    let cells =
        vec![left.slot.to_owned(), left.kind.to_owned(), state.to_owned(), age(left.deleted, now)];
    Leaf { mark: left.mark, cells, note: one_line(&left.told) }
}

fn are(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

/// A shrinking tree on a terminal, or else a line for each change.
#[derive(Default)]
struct Show {
    live: LiveView,
    said: BTreeSet<String>,
}

impl Show {
    fn draw<'a>(
        &mut self,
        left: impl Iterator<Item = (&'a Environment, &'a Parts)>,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let now = Timestamp::now();
        let mut frame = Vec::new();
        let mut lines = Vec::new();
        for (environment, parts) in left {
            let leaves: Vec<Leaf> = parts.seen().map(|left| leaf(&left, now)).collect();
            writeln!(frame, "{BOLD}{}{BOLD:#}  {}", environment.title(), parts.head())?;
            style::tree(&leaves, &mut frame)?;
            lines.push(format!("{} {}", environment.title(), parts.head()));
            lines.extend(
                parts.lines().into_iter().map(|line| format!("{} {line}", environment.title())),
            );
        }
        if console.terminal.is_some() {
            self.live.draw(&frame, console)?;
            return Ok(());
        }
        for line in &lines {
            if !self.said.contains(line) {
                self.say(line, console)?;
            }
        }
        self.said = lines.into_iter().collect();
        Ok(())
    }

    fn say(&mut self, line: &str, console: &mut Console<'_>) -> Result<(), Failure> {
        self.live.leave();
        let now = Timestamp::now();
        writeln!(console.out, "{} {line}", Timestamp::from_second(now.as_second()).unwrap_or(now))?;
        console.out.flush()?;
        Ok(())
    }

    fn leave(&mut self) {
        self.live.leave();
    }
}
