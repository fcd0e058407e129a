//! `paved connect`: what one does with an environment: a shell on its machine, its cluster in the
//! kubeconfig, the way to its database.

mod cloud_cluster;
mod connection_secret;
mod database;
mod forward;
mod kubeconfig;
mod kubeconfig_entry;
mod shell;
mod ssm_exit_code;
mod workspace;

use std::io;
use std::time::{Duration, Instant};

use function_paved_road::apis::{self, ConnectionTarget};
use kube::api::DynamicObject;
use paved_client::cluster::{Cluster, Found, Kinds, find};
use paved_client::environment::Environment;
use paved_client::wait::Goal;
use serde_json::Value;

use crate::cli::Connect;
use crate::failure::Failure;
use crate::wait;
use crate::{Console, Stream};
use connection_secret::ConnectionSecret;

/// Connects to what the flags name.
pub(crate) async fn run(args: &Connect, console: &mut Console<'_>) -> Result<(), Failure> {
    let end = Instant::now() + args.patience.timeout;
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let found = find(&cluster, &kinds, &args.name).await?;
    let aim = aim(found.kind.name(), args)?;
    let object = ready(&cluster, found, args, console).await?;
    let environment = Environment::from_object(&object);
    let target = Target { cluster, object, environment, end };
    match aim {
        ConnectionTarget::Machine => workspace::connect(&target, args, console).await,
        ConnectionTarget::Database => database::connect(&target, args, console).await,
        ConnectionTarget::Cluster => kubeconfig_entry::connect(&target, args, console).await,
    }
}

/// What was found, as it is once it is ready. How that goes is no output: where nobody looks at a
/// terminal, it is told on standard error, and standard output is left to what a program reads
/// there.
async fn ready(
    cluster: &Cluster,
    found: Found,
    args: &Connect,
    console: &mut Console<'_>,
) -> Result<DynamicObject, Failure> {
    let environment = Environment::from_object(&found.object);
    if environment.is_ready() && environment.is_current() {
        return Ok(found.object);
    }
    let api = found.kind.api(&cluster.client, Some(&environment.namespace));
    let (goal, patience) = (Goal::Ready, args.patience);
    let found = vec![found.read(|_| environment.clone())];
    if console.terminal.is_some() {
        wait::until(cluster, found, &goal, patience, console).await?;
    } else {
        let mut nothing = io::sink();
        let mut aside = Console {
            input: &mut *console.input,
            out: console.err.reborrow(),
            err: Stream::new(&mut nothing),
            terminal: None,
            answer: None,
        };
        wait::until(cluster, found, &goal, patience, &mut aside).await?;
    }
    // Others have written to it meanwhile, its spec as well.
    let act = || format!("read {}", environment.title());
    Ok(api.get(&environment.name).await.map_err(|error| cluster.explain(&error, &act()))?)
}

/// The part of an environment of this kind to connect to. Flags for another part are an error.
fn aim(kind: &str, args: &Connect) -> Result<ConnectionTarget, Failure> {
    use ConnectionTarget::{Cluster, Database, Machine};
    let targets =
        apis::for_environment_kind(kind).map_or(&[][..], |api| api.info().connection_targets);
    let Some(usual) = targets.first() else {
        return Err(Failure::Usage(format!(
            "{kind} {}: a {kind} has no machine, cluster or database to connect to",
            args.name
        )));
    };
    let machines = args.ssm || args.unprepared || !args.command.is_empty();
    let databases = args.database || args.export.is_some() || args.show_secrets;
    let clusters =
        args.into.is_some() || args.context_name.is_some() || args.replace || args.port.is_some();
    let aim = if databases && targets.contains(&Database) { Database } else { *usual };
    for (given, what, its) in [
        (machines, "--ssm, --unprepared and COMMAND are for workspaces", Machine),
        (databases, "--database, --export and --show-secrets are for databases", Database),
        (clusters, "--into, --context-name, --replace and --port are for clusters", Cluster),
    ] {
        if given && aim != its {
            return Err(Failure::Usage(format!("{what}: {kind} {} has none", args.name)));
        }
    }
    Ok(aim)
}

/// What is connected to.
struct Target {
    /// The cluster that made it.
    cluster: Cluster,
    object: DynamicObject,
    environment: Environment,
    /// Until when it may be waited for, in all.
    end: Instant,
}

impl Target {
    /// The longest to wait from now on.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// A text of its status.
    fn field(&self, name: &str) -> Option<&str> {
        self.environment.fields.get(name)?.as_str()
    }

    /// A text of its spec.
    fn spec(&self, path: &str) -> Option<&str> {
        self.object.data.pointer(&format!("/spec/{path}")).and_then(Value::as_str)
    }

    /// The id that the cloud knows a part by.
    fn part(&self, slot: &str) -> Option<&str> {
        self.environment.parts.iter().find(|part| part.slot == slot)?.external_name.as_deref()
    }

    fn missing(&self, what: &str) -> Failure {
        Failure::Provisioning {
            what: self.environment.title(),
            message: format!("is ready, but its status has no {what}. Ask your platform team"),
        }
    }

    async fn details(&self) -> Result<ConnectionSecret, Failure> {
        ConnectionSecret::read(self).await
    }
}
