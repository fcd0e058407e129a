//! `paved status`: an environment with every part, from what it says of itself.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::runtime::watcher::Event;
use tokio::time::{MissedTickBehavior, interval};

use crate::Console;
use crate::cli::{List, Listing, Status};
use crate::cluster::{Cluster, Found, Kinds, cause, find, is_denied, watch};
use crate::documents::{self, Format};
use crate::environment::{self, Environment};
use crate::failure::Failure;
use crate::list;
use crate::live::Live;

/// Shows one environment, or lists all.
pub(crate) async fn run(args: &Status, console: &mut Console<'_>) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let all = List {
            all_namespaces: false,
            kind: None,
            output: args.output,
            watch: args.watch,
            access: args.access.clone(),
        };
        return list::run(&all, console).await;
    };
    if args.watch && !matches!(args.output, None | Some(Listing::Wide)) {
        return Err(Failure::Usage("--watch shows a tree: only -o wide goes with it".to_owned()));
    }
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = Kinds::discover(&cluster).await?;
    let found = find(&cluster, &kinds, name).await?;
    let wide = args.output == Some(Listing::Wide);
    if args.watch {
        return follow(&cluster, &found, wide, console).await;
    }
    match args.output {
        None | Some(Listing::Wide) => {
            environment::tree(&Environment::of(&found.object), Timestamp::now(), wide, console.out)?;
        }
        Some(Listing::Name) => {
            writeln!(console.out, "{}", list::name(&found.kind, &found.object))?;
        }
        Some(Listing::Json) => documents::print(&documents::tidy(&found.object), Format::Json, console)?,
        Some(Listing::Yaml) => documents::print(&documents::tidy(&found.object), Format::Yaml, console)?,
    }
    Ok(())
}

/// Draws it again whenever it changes, for as long as it exists and the caller looks.
async fn follow(
    cluster: &Cluster,
    found: &Found,
    wide: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let name = found.object.metadata.name.as_deref();
    let mut events = watch(cluster, &found.kind, found.object.metadata.namespace.as_deref(), name).boxed();
    let mut seen = Environment::of(&found.object);
    let mut live = Live::default();
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Without a terminal a tree is printed for each change, not for each second.
    let ticking = console.terminal.is_some();
    let mut changed = true;
    loop {
        if changed {
            let mut frame = Vec::new();
            environment::tree(&seen, Timestamp::now(), wide, &mut frame)?;
            live.draw(&frame, console)?;
        }
        changed = tokio::select! {
            _ = tick.tick(), if ticking => true,
            event = events.next() => match event {
                Some(Ok(Event::Apply(object) | Event::InitApply(object))) => {
                    seen = Environment::of(&object);
                    true
                }
                Some(Ok(Event::Delete(_))) | None => {
                    writeln!(console.out, "{} is gone", seen.title())?;
                    return Ok(());
                }
                Some(Ok(Event::Init | Event::InitDone)) => false,
                Some(Err(error)) => {
                    let error = cause(error);
                    if is_denied(&error) {
                        return Err(cluster.explain(&error, &format!("watch {}", seen.title())));
                    }
                    false
                }
            },
        };
    }
}
