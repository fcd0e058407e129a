//! `paved connect`: opens a shell on a machine, adds a cluster to the kubeconfig, or prints the
//! command for a database.

mod cloud_cluster;
mod connection_secret;
mod database;
mod endpoint;
mod forward;
mod kubeconfig;
mod kubeconfig_entry;
mod shell;
mod ssm_exit_code;
mod stdio;
mod workspace;

use std::io;
use std::time::{Duration, Instant};

use function_paved_road::apis::{self, ConnectionTarget};
use function_paved_road::power::PowerState;
use kube::api::DynamicObject;
use paved_client::cluster::{Cluster, Found, Kinds, find};
use paved_client::environment::Environment;
use paved_client::wait::Goal;
use serde_json::Value;

use crate::ask::agrees;
use crate::cli::{Access, Connect, Printed};
use crate::failure::Failure;
use crate::ssh_host::Host;
use crate::{Console, Stream};
use crate::{lifecycle, wait};
use connection_secret::ConnectionSecret;

pub(crate) use shell::quote;
pub(crate) use workspace::{USER, instance_id};

/// Connects to the environment that the flags name.
pub(crate) async fn run(args: &Connect, console: &mut Console<'_>) -> Result<(), Failure> {
    if args.stdio {
        return stdio::run(args, console).await;
    }
    let end = args.end();
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let found = find(&cluster, &kinds, &args.name).await?;
    let aim = aim(found.kind.name(), args)?;
    let object = ready(&cluster, found, args, console).await?;
    let target = Target::new(cluster, object, end);
    match aim {
        ConnectionTarget::Machine => workspace::connect(&target, args, console).await,
        ConnectionTarget::Database => database::connect(&target, args, console).await,
        ConnectionTarget::Cluster => kubeconfig_entry::connect(&target, args, console).await,
    }
}

/// Finds the workspace that an SSH program names.
pub(crate) async fn find_workspace(
    access: &Access,
    host: &Host,
) -> Result<(Cluster, Found), Failure> {
    let mut cluster = access.connect().await?;
    if let Some(namespace) = &host.namespace {
        if cluster.is_namespace_chosen && cluster.namespace != *namespace {
            return Err(Failure::Usage(format!(
                "the workspace is in namespace {namespace}, and --namespace is {}. Leave one of \
                 them out",
                cluster.namespace
            )));
        }
        cluster.namespace.clone_from(namespace);
    }
    let kinds = Kinds::discover(&cluster).await?.with_target(ConnectionTarget::Machine);
    let found = find(&cluster, &kinds, &host.name).await?;
    Ok((cluster, found))
}

/// Waits until the environment is ready, and returns its object. Without a terminal, the progress
/// appears on standard error, because a program may read standard output.
async fn ready(
    cluster: &Cluster,
    found: Found,
    args: &Connect,
    console: &mut Console<'_>,
) -> Result<DynamicObject, Failure> {
    let environment = Environment::from_object(&found.object);
    let is_stopped = matches!(environment.power, Some(PowerState::Stopped | PowerState::Stopping));
    if environment.is_ready() && environment.is_current() && !is_stopped {
        return Ok(found.object);
    }
    let api = found.kind.api(&cluster.client, Some(&environment.namespace));
    let (found, goal, patience) = if is_stopped {
        allow_start(&environment.title(), args, console)?;
        (lifecycle::start_now(cluster, found, console).await?, Goal::Running, args.patience)
    } else {
        (found, Goal::Ready, args.patience)
    };
    let found = vec![found.read(|object| Environment::from_object(&object))];
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
    // Other clients may have changed the object meanwhile, including its spec.
    let act = || format!("read {}", environment.title());
    Ok(api.get(&environment.name).await.map_err(|error| cluster.explain(&error, &act()))?)
}

/// Asks whether a stopped environment may be started, unless a flag says so.
fn allow_start(title: &str, args: &Connect, console: &mut Console<'_>) -> Result<(), Failure> {
    let unanswered = if args.stdio {
        format!(
            "{title} is stopped. Start it with `paved start`, or write its entry with `paved ssh \
             config --start`"
        )
    } else {
        format!("{title} is stopped. Use --start to start it")
    };
    if args.start || agrees(&format!("{title} is stopped. Start it?"), &unanswered, console)? {
        return Ok(());
    }
    Err(Failure::Usage(format!("cancelled. {title} stays stopped")))
}

/// The target in an environment of this kind. Flags for another target are an error.
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
    let machines = args.ssm
        || args.unprepared
        || !args.command.is_empty()
        || !args.forward.is_empty()
        || args.print == Some(Printed::Vscode);
    let databases = args.database
        || args.export.is_some()
        || args.show_secrets
        || args.print == Some(Printed::Url);
    let clusters =
        args.into.is_some() || args.context_name.is_some() || args.replace || args.port.is_some();
    let aim = if databases && targets.contains(&Database) { Database } else { *usual };
    for (given, what, its) in [
        (
            machines,
            "--ssm, --unprepared, -L, --print=vscode and COMMAND are for workspaces",
            Machine,
        ),
        (
            databases,
            "--database, --export, --print=url and --show-secrets are for databases",
            Database,
        ),
        (clusters, "--into, --context-name, --replace and --port are for clusters", Cluster),
    ] {
        if given && aim != its {
            return Err(Failure::Usage(format!("{what}: {kind} {} has none", args.name)));
        }
    }
    Ok(aim)
}

/// The environment to connect to.
struct Target {
    /// The platform's cluster, which has the environment's object.
    cluster: Cluster,
    object: DynamicObject,
    environment: Environment,
    /// The end of the time limit for all waits together.
    end: Instant,
}

impl Target {
    fn new(cluster: Cluster, object: DynamicObject, end: Instant) -> Self {
        let environment = Environment::from_object(&object);
        Self { cluster, object, environment, end }
    }

    /// The remaining time of the limit.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// A text of the environment's status.
    fn field(&self, name: &str) -> Option<&str> {
        self.environment.fields.get(name)?.as_str()
    }

    /// A text of the environment's spec.
    fn spec(&self, path: &str) -> Option<&str> {
        self.object.data.pointer(&format!("/spec/{path}")).and_then(Value::as_str)
    }

    /// The cloud's ID of the resource in a slot.
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
