//! `paved wait`: waits until environments are ready, have failed permanently, or are deleted. It
//! watches the environments instead of polling them.

mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use paved_client::cluster::{Cluster, Found, Kinds, find_each};
use paved_client::environment::{Environment, spell};
use paved_client::wait::{Goal, Trackers, WatchSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::Console;
use crate::cli::{Patience, Wait};
use crate::failure::Failure;
use crate::outputs;
use report::Report;

/// The minimum time limit of the search for the environments.
const SEARCH: Duration = Duration::from_secs(10);

/// Waits for the environments that the flags name, and writes outputs for the next step.
pub(crate) async fn run(args: &Wait, console: &mut Console<'_>) -> Result<(), Failure> {
    let leaves_outputs = args.goal == Goal::Ready;
    if leaves_outputs {
        outputs::prepare(&args.outputs)?;
    } else if args.outputs.output_file.is_some() {
        return Err(Failure::Usage(
            "--output-file cannot be used with --for, because it is written when the environment \
             is ready"
                .to_owned(),
        ));
    }
    let cluster = args.access.connect().await?;
    let mut found = Vec::new();
    let mut failures = Vec::new();
    let (begin, longest) = (Instant::now(), args.patience.timeout.max(SEARCH));
    let searched = timeout(longest, search(&cluster, &args.names)).await;
    let late = |_| {
        Failure::TimedOut(format!("{} did not respond within {}", cluster.server, spell(longest)))
    };
    for one in searched.map_err(late)?? {
        match one {
            Ok(one) => found.push(one),
            Err(paved_client::Failure::Absent(message)) if args.goal == Goal::Deleted => {
                writeln!(console.out, "{message}")?;
            }
            Err(failure) => failures.push(failure.into()),
        }
    }
    Failure::combine(failures)?;
    if leaves_outputs {
        let known = found.iter().map(|one| &one.object);
        outputs::tell_apart(
            &args.outputs,
            known.map(|one| [&*one.kind, &*one.namespace, &*one.name]),
        )?;
    }
    let searched = Duration::from_secs(begin.elapsed().as_secs());
    let patience =
        Patience { timeout: args.patience.timeout.saturating_sub(searched), ..args.patience };
    let environments = until(&cluster, found, &args.goal, patience, console).await?;
    if leaves_outputs { outputs::write(&args.outputs, &environments) } else { Ok(()) }
}

/// The environment of each name, or the reason why it was not found.
async fn search(
    cluster: &Cluster,
    names: &[String],
) -> Result<Vec<Result<Found<Environment>, paved_client::Failure>>, Failure> {
    let kinds = Kinds::discover(cluster).await?;
    Ok(find_each(cluster, &kinds, names, |object| Environment::from_object(&object)).await?)
}

/// Waits until all environments reach the goal, and returns them in that state. The first permanent
/// failure ends the wait.
pub(crate) async fn until(
    cluster: &Cluster,
    targets: Vec<Found<Environment>>,
    goal: &Goal,
    patience: Patience,
    console: &mut Console<'_>,
) -> Result<Vec<Environment>, Failure> {
    let begin = Instant::now();
    let mut trackers = Trackers::new(targets.len(), goal, patience.patience, begin);
    let mut watched = WatchSet::new(targets);
    let mut events = watched.events(cluster);
    let mut report = Report::new(begin);
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let ticked = tokio::select! {
            _ = tick.tick() => true,
            Some(changes) = events.next() => {
                for note in watched.take(changes, cluster)? {
                    report.note(&note, console)?;
                }
                // Changes that arrive together are shown together.
                if watched.is_listing() {
                    continue;
                }
                false
            }
        };
        let (now, clock) = (Instant::now(), Timestamp::now());
        let news = watched.news();
        report.show(&watched.seen, &news, clock, now, console)?;
        if watched.is_lost() {
            trackers.reset();
        } else if ticked {
            trackers.evaluate(0..watched.seen.len(), &watched.seen, now, clock);
        } else {
            trackers.evaluate(news, &watched.seen, now, clock);
        }
        if let Some(ending) = trackers.failure() {
            report.end(&watched.seen, goal, false, now, console)?;
            return Err(ending.into());
        }
        if trackers.are_done() {
            report.end(&watched.seen, goal, true, now, console)?;
            drop(report);
            return Ok(watched
                .seen
                .into_iter()
                .map(|seen| Arc::unwrap_or_clone(seen.environment))
                .collect());
        }
        if now.duration_since(begin) >= patience.timeout {
            report.end(&watched.seen, goal, false, now, console)?;
            return Err(timed_out(&watched, &trackers, goal, patience.timeout));
        }
    }
}

/// The failure of a wait that timed out, with the current state of each late environment.
fn timed_out(watched: &WatchSet, trackers: &Trackers, goal: &Goal, after: Duration) -> Failure {
    let late = watched.seen.iter().enumerate().filter(|(place, _)| !trackers.is_done(*place));
    let what = match goal {
        Goal::Ready => "not ready".to_owned(),
        Goal::Running => "not running".to_owned(),
        Goal::Deleted => "not deleted".to_owned(),
        Goal::Condition { kind, status } => format!("not {kind}={status}"),
    };
    let told: Vec<String> = late
        .map(|(_, seen)| {
            let one = &seen.environment;
            format!("{} is {what} after {}: {}", one.title(), spell(after), report::state(one))
        })
        .collect();
    Failure::TimedOut(told.join("; "))
}
