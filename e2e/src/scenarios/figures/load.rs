//! Ten people hold a thousand streams at two portals. The portals watch two thousand environments
//! with fifty changes a second. Then one portal is killed.

mod listener;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::listener::Listener;
use self::world::{Known, Replica, Told, Watches, World};
use crate::eventually::eventually;
use crate::fixture::Fixture;

/// The number of people. Each has a private namespace.
const PEOPLE: usize = 10;

/// How long the changes go on before a portal is killed.
const BEFORE: Duration = Duration::from_secs(2);

/// The longest delay for 99 of a hundred events, from before the change is written.
const WAIT: Duration = Duration::from_millis(500);

/// How long streams may take to return after their portal is killed.
const BACK: Duration = Duration::from_secs(5);

/// The maximum memory of a portal, in KiB.
const MEMORY: u64 = 200 * 1024;

/// The size of the load.
pub struct Size {
    /// Whether this is the promised size. Only then do the promised limits apply.
    is_promised: bool,
    environments: usize,
    streams: usize,
    /// Changes per second.
    changes: usize,
    seconds: usize,
}

impl Size {
    /// `PAVED_ROAD_LOAD=ENVIRONMENTS,STREAMS,CHANGES,SECONDS`, or the promised size.
    fn wanted() -> Result<Self> {
        let asked = env::var("PAVED_ROAD_LOAD").ok();
        let is_promised = asked.is_none();
        let text = asked.unwrap_or_else(|| "2000,1000,50,60".to_owned());
        let numbers: Option<Vec<usize>> =
            text.split(',').map(|number| number.trim().parse().ok()).collect();
        let Some([environments, streams, changes, seconds]) = numbers.as_deref() else {
            bail!(
                "PAVED_ROAD_LOAD: found {text:?}; allowed: four numbers, for example \
                   2000,1000,50,60"
            );
        };
        let size = Self {
            is_promised,
            environments: *environments,
            streams: *streams,
            changes: *changes,
            seconds: *seconds,
        };
        let fits = size.environments >= PEOPLE && size.streams >= 2 && size.changes >= 1;
        ensure!(fits, "PAVED_ROAD_LOAD: found {text:?}; allowed: at least {PEOPLE},2,1");
        Ok(size)
    }
}

/// No event is lost or repeated, and each portal watches each kind once, for any number of streams.
/// Prints the costs, and checks them for the promised size.
pub(in crate::scenarios) async fn streams_hear_of_every_change(fixture: Fixture) -> Result<()> {
    let size = Size::wanted()?;
    allow_many_files()?;
    let world = World::set(&fixture, &size).await?;
    let mut tasks = JoinSet::new();
    let told = Told::default();
    told.follow(&world, &mut tasks);
    let others = world.watches_of_others().await?;
    let replicas = [world.portal(0).await?, world.portal(1).await?];
    let crowd = gather(&world, &replicas, &size, &mut tasks).await?;
    one_watch_each(&world, &others, replicas.len()).await?;
    told.take();

    let (count, took) = world.change(&size).await?;
    caught_up(&world, &crowd).await?;
    let at = format!("{} streams at two portals", size.streams);
    let first = Round { what: &at, count, took, killed: None };
    first.report(&world, &crowd, &told, &size).await?;
    for replica in &replicas {
        has_memory(replica, &size)?;
    }

    let killing = async {
        sleep(BEFORE).await;
        replicas[0].process.kill();
        anyhow::Ok(Instant::now())
    };
    let ((count, took), killed) = tokio::try_join!(world.change(&size), killing)?;
    caught_up(&world, &crowd).await?;
    let back = crowd.iter().filter(|one| one.begins_at == 0).filter_map(|one| one.heard().synced);
    let back =
        back.map(|synced| synced.saturating_duration_since(killed)).max().unwrap_or_default();
    println!(
        "    a portal is killed: all of its streams are back after {:.2} s",
        back.as_secs_f64()
    );
    ensure!(
        !size.is_promised || back <= BACK,
        "streams are back after {back:?}; {BACK:?} is promised"
    );
    let at = format!("{} streams at one portal", size.streams);
    let second = Round { what: &at, count, took, killed: Some(0) };
    second.report(&world, &crowd, &told, &size).await?;
    has_memory(&replicas[1], &size)?;
    one_watch_each(&world, &others, 1).await?;
    let doubled: Vec<String> =
        crowd.iter().flat_map(|one| one.heard().doubled.clone()).take(10).collect();
    ensure!(doubled.is_empty(), "events contradict earlier events: {doubled:?}");
    drop(tasks);
    world.clear().await
}

/// Opens all streams, half of them at each portal, and waits until each knows all environments.
async fn gather(
    world: &World,
    replicas: &[Replica],
    size: &Size,
    tasks: &mut JoinSet<()>,
) -> Result<Vec<Listener>> {
    let begin = Instant::now();
    let addresses: Arc<[String]> = replicas.iter().map(|replica| replica.address.clone()).collect();
    let mut tokens = Vec::new();
    for person in 0..PEOPLE {
        tokens.push(world.token(person).await?);
    }
    let crowd: Vec<Listener> = (0..size.streams)
        .map(|number| Listener::new(number / 2 % PEOPLE, number % replicas.len()))
        .collect();
    for one in &crowd {
        tasks.spawn(one.clone().listen(Arc::clone(&addresses), tokens[one.person].clone()));
    }
    caught_up(world, &crowd).await?;
    for one in &crowd {
        one.heard().snapshots = 0;
    }
    println!(
        "    {} streams know all environments after {:.2} s",
        crowd.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(crowd)
}

/// Waits until all streams have the state of a fresh list.
async fn caught_up(world: &World, crowd: &[Listener]) -> Result<()> {
    let listed = world.listed().await?;
    let mut behind = String::new();
    let all = eventually("all streams have the state of a fresh list", async || {
        behind =
            crowd.iter().find_map(|one| difference(one, &listed[one.person])).unwrap_or_default();
        Ok(behind.is_empty().then_some(()))
    });
    let all = all.await;
    all.with_context(|| behind.clone())
}

fn difference(one: &Listener, listed: &Known) -> Option<String> {
    let heard = one.heard();
    if heard.known == *listed {
        return None;
    }
    let (known, listed): (BTreeSet<_>, BTreeSet<_>) =
        (heard.known.iter().collect(), listed.iter().collect());
    let some = known.symmetric_difference(&listed).take(3).collect::<Vec<_>>();
    Some(format!(
        "person {} has {} of {}; not the same: {some:?}",
        one.person,
        known.len(),
        listed.len()
    ))
}

/// Checks that each portal watches each kind once, beside the watches of others.
async fn one_watch_each(world: &World, others: &Watches, portals: usize) -> Result<()> {
    let mut wrong: Vec<(String, f64)> = Vec::new();
    let checked = eventually("each portal watches each kind once", async || {
        let watches = world.watches().await?;
        let more = |kind: &String| watches[kind] - others.get(kind).unwrap_or(&0.0);
        let counted = watches.keys().map(|kind| (kind.clone(), more(kind)));
        #[expect(
            clippy::float_cmp,
            clippy::cast_precision_loss,
            reason = "they are small whole numbers"
        )]
        let differing = counted.filter(|(_, count)| *count != portals as f64);
        wrong = differing.collect();
        Ok((wrong.is_empty() && !watches.is_empty()).then_some(()))
    });
    let checked = checked.await;
    checked.with_context(|| format!("watches of {portals} portals: {wrong:?}"))?;
    println!("    watches of each of {} kinds: {portals}", world.watches().await?.len());
    Ok(())
}

/// A round of changes.
struct Round<'r> {
    what: &'r str,
    count: usize,
    took: Duration,
    /// The portal that was killed during the changes. Its streams continue at the other portal.
    killed: Option<usize>,
}

impl Round<'_> {
    /// Prints how long changes took to each stream. A stream without a new snapshot must have
    /// received each change once.
    async fn report(
        &self,
        world: &World,
        crowd: &[Listener],
        told: &Told,
        size: &Size,
    ) -> Result<()> {
        // The reference watch is a client like the others, and may receive a change last.
        eventually("the API server's own watch has received all changes", async || {
            Ok((told.count() >= self.count).then_some(()))
        })
        .await?;
        let told = told.take();
        let mut expected: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (version, namespace) in &told {
            expected.entry(namespace).or_default().push(*version);
        }
        let mut waited = Vec::new();
        let (mut anew, none) = (0, Vec::new());
        for one in crowd {
            let mut heard = one.heard();
            let changes = std::mem::take(&mut heard.changes);
            waited.extend(changes.iter().map(|(_, waited)| *waited));
            let person = one.person;
            if std::mem::take(&mut heard.snapshots) > 0 {
                let has_cause = self.killed == Some(one.begins_at) || !size.is_promised;
                ensure!(has_cause, "person {person} got a new snapshot from a running portal");
                anew += 1;
                continue;
            }
            let mut versions: Vec<u64> = changes.iter().map(|(version, _)| *version).collect();
            versions.sort_unstable();
            let namespace = world.namespaces[person].as_str();
            let expected = expected.get(namespace).unwrap_or(&none);
            let (all, of) = (versions.len(), expected.len());
            ensure!(versions == *expected, "person {person} heard {all} of {of}");
        }
        waited.sort_unstable();
        self.print(&waited, anew);
        let p99 = share(&waited, 99);
        ensure!(!size.is_promised || p99 <= WAIT, "the p99 is {p99:?}; {WAIT:?} is promised");
        Ok(())
    }

    fn print(&self, waited: &[Duration], anew: usize) {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = self.count as f64 / self.took.as_secs_f64();
        println!(
            "    {}, {rate:.0} changes a second: {} events, p50 {:?}, p99 {:?}, max {:?}; {anew} got a new snapshot",
            self.what,
            waited.len(),
            share(waited, 50),
            share(waited, 99),
            share(waited, 100)
        );
    }
}

/// The upper bound of a percentage of sorted times.
fn share(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

fn has_memory(replica: &Replica, size: &Size) -> Result<()> {
    let peak = replica.process.peak_memory().context("the portal has ended")?;
    println!("    most memory: {} MiB", peak / 1024);
    ensure!(!size.is_promised || peak <= MEMORY, "{peak} KiB of memory; {MEMORY} is promised");
    Ok(())
}

/// Each stream is an open file. The portal raises its own limit.
fn allow_many_files() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, most).context("allowing as many open files as may be")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_the_upper_bound_of_so_many() {
        let times: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(
            [50, 99, 100].map(|percent| share(&times, percent).as_millis()),
            [100, 198, 200]
        );
        assert_eq!(share(&[], 99), Duration::ZERO);
    }
}
