//! Flags of `paved controller`.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use paved_client::cluster::{Access, Cluster, configure};
use tokio::signal::unix::{SignalKind, signal};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::{Clock, Failure, Limits, Options, Receiver, SettingsFrom, Template, plan, run};

/// Flags of `paved controller`.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Print the next actions of the controller, and exit. Change no object in the cluster.
    #[arg(long)]
    pub dry_run: bool,

    /// Name of the EnvironmentConfig with the Settings.
    #[arg(
        long,
        value_name = "NAME",
        env = "PAVED_CONTROLLER_SETTINGS",
        default_value = function_paved_road::manifests::ENVIRONMENT_CONFIG
    )]
    settings: String,

    /// Where the Settings are. With none, a missing EnvironmentConfig means the defaults.
    #[arg(
        long,
        value_name = "WHERE",
        value_enum,
        env = "PAVED_CONTROLLER_SETTINGS_FROM",
        default_value = "environment-config"
    )]
    settings_from: SettingsFrom,

    /// Address and port of health and metrics.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "PAVED_CONTROLLER_LISTEN",
        default_value = "127.0.0.1:8081"
    )]
    listen: SocketAddr,

    /// URL that gets a CloudEvent when an environment changes its state.
    #[arg(
        long,
        value_name = "URL",
        env = "PAVED_CONTROLLER_NOTIFY",
        hide_env_values = true,
        help_heading = "Notifications"
    )]
    notify: Option<String>,

    /// File with this URL, for example a mounted Secret. Read at the start.
    #[arg(
        long,
        value_name = "FILE",
        env = "PAVED_CONTROLLER_NOTIFY_FILE",
        conflicts_with = "notify",
        help_heading = "Notifications"
    )]
    notify_file: Option<PathBuf>,

    /// Template of the body: slack, teams, or a file [default: CloudEvents as JSON].
    #[arg(
        long,
        value_name = "TEMPLATE",
        env = "PAVED_CONTROLLER_NOTIFY_TEMPLATE",
        help_heading = "Notifications"
    )]
    notify_template: Option<String>,

    /// Log level: error, warn, info or debug.
    #[arg(long, value_name = "LEVEL", env = "PAVED_CONTROLLER_LOG_LEVEL", default_value = "info")]
    log_level: Level,
}

impl Flags {
    /// Runs the controller until a signal comes. With `--dry-run`, returns the lines to print.
    ///
    /// # Errors
    /// A flag or a file is invalid, or the cluster does not answer.
    pub async fn run(&self, access: &Access) -> Result<Vec<String>, Failure> {
        let cluster = Cluster::from_config(configure(access).await?, access)?;
        let options = self.options(&cluster)?;
        if self.dry_run {
            return plan(cluster, &options).await;
        }
        log(self.log_level);
        run(cluster, options, signalled()).await.map(|()| Vec::new())
    }

    fn options(&self, cluster: &Cluster) -> Result<Options, Failure> {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "paved-controller".to_owned());
        let mut unique = [0; 4];
        getrandom::fill(&mut unique)
            .map_err(|error| Failure::Usage(format!("no random numbers: {error}")))?;
        Ok(Options {
            namespace: cluster.namespace.clone(),
            identity: format!("{host}_{:08x}", u32::from_be_bytes(unique)),
            settings: self.settings.clone(),
            settings_from: self.settings_from,
            receiver: self.receiver()?,
            listen: Some(self.listen),
            limits: Limits::default(),
            clock: Clock::system(),
        })
    }

    fn receiver(&self) -> Result<Option<Receiver>, Failure> {
        let (flag, url) = match (&self.notify, &self.notify_file) {
            (Some(url), _) => ("--notify", url.clone()),
            (None, Some(path)) => ("--notify-file", read(path, "--notify-file")?),
            (None, None) => return Ok(None),
        };
        // The URL may be a password: the message does not have it.
        let uri = url.trim().parse::<http::Uri>().ok();
        let is_http = |uri: &http::Uri| {
            uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))
        };
        let url = uri.filter(is_http).ok_or_else(|| {
            Failure::Usage(format!(
                "{flag}: found another text; allowed: a URL with http or https, for example \
                 https://events.example.org/paved-road"
            ))
        })?;
        let template = match &self.notify_template {
            None => None,
            Some(name) => Some(template(name)?),
        };
        Ok(Some(Receiver { url, template }))
    }
}

fn template(name: &str) -> Result<Template, Failure> {
    if let Some(template) = Template::built_in(name) {
        return Ok(template);
    }
    let text = read(&PathBuf::from(name), "--notify-template")?;
    Template::parse(&text).map_err(|error| {
        Failure::Usage(format!(
            "--notify-template: found {name}; allowed: slack, teams, or a file with a template of \
             JSON: {error}"
        ))
    })
}

fn read(path: &PathBuf, flag: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!("{flag}: {} cannot be read: {error}", path.display()))
    })
}

/// Logs to standard error: JSON lines, or text on a terminal.
fn log(level: Level) {
    // The client logs responses that it cannot read, and they may have secrets.
    let targets = Targets::new()
        .with_default(level)
        .with_target("kube_client", Level::ERROR)
        .with_target("kube_runtime", Level::ERROR);
    let registry = tracing_subscriber::registry().with(targets);
    let _ = if std::io::stderr().is_terminal() {
        registry.with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr)).try_init()
    } else {
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).json();
        registry.with(lines.flatten_event(true).with_span_list(false)).try_init()
    };
}

/// Waits for SIGTERM or SIGINT.
async fn signalled() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
