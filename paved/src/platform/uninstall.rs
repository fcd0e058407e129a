//! `paved platform uninstall`: removes an installation from a cluster without environments.
//!
//! Each step waits for the end of the step before, because Crossplane still needs the later objects
//! until then. Every run looks for the remaining objects, so an interrupted run continues.

mod environments;
mod installed;
mod kinds;
mod packages;
mod providers;

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use paved_client::cluster::Cluster;
use tokio::time::sleep;

use crate::Console;
use crate::ask::agrees;
use crate::cli::Uninstall;
use crate::failure::Failure;
use crate::signals;
use crate::style::{BOLD, harmless};
use installed::Installed;
use kinds::{Object, api};

/// The default time limit.
const TIMEOUT: Duration = Duration::from_mins(10);

/// The pause between two reads of remaining objects.
const PAUSE: Duration = Duration::from_secs(1);

/// The maximum number of names in a message.
const MAX_NAMES: usize = 10;

/// Shows the objects of an installation, asks, and removes them. Refuses while an environment
/// exists.
pub(crate) async fn run(args: &Uninstall, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = args.access.connect().await?;
    let found = Installed::find(&cluster, args.providers).await?;
    environments::check(&cluster, &found.definitions).await?;
    if found.is_empty() {
        writeln!(console.out, "Paved Road is not installed at {}", cluster.server)?;
        return Ok(());
    }
    show(&found, &cluster, console)?;
    let unanswered = "no terminal to ask for confirmation. Use --yes to uninstall without a \
                      question. Nothing was deleted";
    if !(args.yes || agrees("Uninstall?", unanswered, console)?) {
        return Err(Failure::Usage("cancelled. Nothing was deleted".to_owned()));
    }
    let deadline = Instant::now() + args.timeout.unwrap_or(TIMEOUT);
    let work = async {
        Run { cluster: &cluster, deadline }.remove(&found, console).await?;
        left(&found, &cluster, console).await
    };
    signals::unless_asked(Box::pin(work), "to continue, run: paved platform uninstall").await
}

/// Lists the objects by step.
fn show(found: &Installed, cluster: &Cluster, console: &mut Console<'_>) -> Result<(), Failure> {
    writeln!(console.err, "{BOLD}Deletes from {}{BOLD:#}", cluster.server)?;
    for step in found.steps() {
        let names: Vec<String> = step.objects.iter().map(Object::title).collect();
        if !names.is_empty() {
            writeln!(console.err, "  {}: {}", step.title, names.join(", "))?;
        }
    }
    for note in found.notes() {
        writeln!(console.err, "note: {note}")?;
    }
    Ok(())
}

/// Prints the objects that stay in the cluster.
async fn left(
    found: &Installed,
    cluster: &Cluster,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    writeln!(console.out, "Paved Road is uninstalled")?;
    for line in found.left(cluster).await? {
        writeln!(console.out, "left: {}", harmless(&line))?;
    }
    Ok(())
}

/// A run with its time limit.
struct Run<'c> {
    cluster: &'c Cluster,
    deadline: Instant,
}

impl Run<'_> {
    async fn remove(&self, found: &Installed, console: &mut Console<'_>) -> Result<(), Failure> {
        for step in found.steps() {
            if step.ends_kinds {
                // An environment that was created meanwhile would be deleted with its kind.
                environments::check(self.cluster, &found.definitions).await?;
            }
            for object in &step.objects {
                self.delete(object, console).await?;
            }
            let waited = step.objects.iter().chain(&step.dependents);
            self.until_gone(waited.collect()).await?;
        }
        Ok(())
    }

    /// Deletes an object. An object that does not exist any more counts as deleted.
    async fn delete(&self, object: &Object, console: &mut Console<'_>) -> Result<(), Failure> {
        let title = object.title();
        match api(self.cluster, &object.resource)
            .delete(&object.name, &DeleteParams::background())
            .await
        {
            Ok(()) => writeln!(console.out, "{title} deleted")?,
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                return Err(self.cluster.explain(&error, &format!("delete {title}")).into());
            }
        }
        console.out.flush()?;
        Ok(())
    }

    /// Waits until no object exists any more.
    async fn until_gone(&self, mut objects: Vec<&Object>) -> Result<(), Failure> {
        loop {
            let mut left = Vec::new();
            for object in objects {
                if object.exists(self.cluster).await? {
                    left.push(object);
                }
            }
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= self.deadline {
                let names: Vec<String> = left.iter().map(|object| object.title()).collect();
                return Err(Failure::TimedOut(format!(
                    "still being deleted: {}. To continue, run: paved platform uninstall",
                    few(&names)
                )));
            }
            objects = left;
            sleep(PAUSE).await;
        }
    }
}

/// The first names, and the number of others.
fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}
