//! `paved status`: shows an environment with all its resources, from its own status.

mod markdown;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use paved_client::cluster::{Cluster, Found, Kinds, find};
use paved_client::environment::{Environment, tidy};
use paved_client::wait::{WatchSet, Watched};
use tokio::time::{MissedTickBehavior, interval};

use crate::Console;
use crate::cli::{List, Listing, Sort, Status};
use crate::documents::{self, Format};
use crate::failure::Failure;
use crate::list;
use crate::live_view::LiveView;
use crate::show::{self, View};

/// Shows one environment, or lists all.
pub(crate) async fn run(args: &Status, console: &mut Console<'_>) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let all = List {
            all_namespaces: false,
            kind: None,
            output: args.output,
            watch: args.watch,
            sort: Sort::default(),
            expiring: None,
            access: args.access.clone(),
        };
        return list::run(&all, console).await;
    };
    if args.watch && !matches!(args.output, None | Some(Listing::Wide)) {
        return Err(Failure::Usage("--watch shows a tree; allowed: -o wide".to_owned()));
    }
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let found = match find(&cluster, &kinds, name).await {
        // A pipeline closes its comment with this text.
        Err(paved_client::Failure::Absent(_)) if args.output == Some(Listing::Markdown) => {
            let name = name.rsplit_once('/').map_or(name.as_str(), |(_, name)| name);
            let text = markdown::absent(&cluster.namespace, name);
            return Ok(console.out.whole(|out| write!(out, "{text}"))?);
        }
        found => found?,
    };
    let wide = args.output == Some(Listing::Wide);
    if args.watch {
        return follow(&cluster, found, wide, console).await;
    }
    match args.output {
        None | Some(Listing::Wide) => {
            let seen = Environment::from_object(&found.object);
            let view = View::new(wide, console);
            show::tree(&seen, Timestamp::now(), view, &mut console.out)?;
            show::next(&seen, view, console)?;
        }
        Some(Listing::Name) => {
            let namespace = found.object.metadata.namespace.as_ref();
            let has_namespace =
                cluster.is_namespace_chosen || namespace != Some(&cluster.namespace);
            writeln!(console.out, "{}", list::name(&found.kind, &found.object, has_namespace))?;
        }
        Some(Listing::Markdown) => {
            let seen = Environment::from_object(&found.object);
            let text = markdown::comment(&seen, Timestamp::now());
            console.out.whole(|out| write!(out, "{text}"))?;
        }
        Some(Listing::Json) => documents::print(&tidy(&found.object), Format::Json, console)?,
        Some(Listing::Yaml) => documents::print(&tidy(&found.object), Format::Yaml, console)?,
    }
    Ok(())
}

/// Redraws the environment after each change, until it is deleted or the command is stopped. A note
/// says when the cluster does not answer, because the tree is then outdated.
async fn follow(
    cluster: &Cluster,
    found: Found,
    wide: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut watched = WatchSet::new(vec![found.read(|object| Environment::from_object(&object))]);
    let mut events = watched.events(cluster);
    let mut live = LiveView::default();
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Without a terminal, a tree is printed for each change, and not each second.
    let ticking = console.terminal.is_some();
    let mut drawn: Option<Arc<Environment>> = None;
    loop {
        let Watched { environment, gone } = &watched.seen[0];
        if *gone {
            writeln!(console.out, "{} is gone", environment.title())?;
            return Ok(());
        }
        if ticking || drawn.as_ref() != Some(environment) {
            let mut frame = Vec::new();
            let view = View::new(wide, console);
            show::tree(environment, Timestamp::now(), view, &mut frame)?;
            live.draw(&frame, console)?;
            drawn = Some(Arc::clone(environment));
        }
        loop {
            tokio::select! {
                _ = tick.tick(), if ticking => break,
                Some(changes) = events.next() => {
                    for note in watched.take(changes, cluster)? {
                        live.leave();
                        writeln!(console.err, "note: {note}")?;
                    }
                    if !watched.is_listing() {
                        break;
                    }
                }
            }
        }
    }
}
