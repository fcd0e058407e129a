//! A control plane in the background: its start, its state file and its end.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::Args;
use crate::control_plane::{ControlPlane, background};

/// How long the control plane may take to end.
const GRACE: Duration = Duration::from_mins(1);

/// The process of a control plane, and its files.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// Its process id.
    pub pid: u32,
    /// When that process started, in the kernel's ticks. Another process may get the same id later.
    started: String,
    /// Its folder, once it is ready.
    pub folder: Option<PathBuf>,
    /// The folder of its PostgreSQL server, which belongs to another user.
    postgres: Option<PathBuf>,
    /// Whether its folder is kept.
    keep: bool,
}

impl State {
    /// The state of this process, which runs `plane`.
    pub fn from_plane(plane: &ControlPlane) -> Result<Self> {
        let folder = Some(plane.folder().to_owned());
        let postgres = plane.postgres.as_ref().map(|postgres| postgres.folder().to_owned());
        Ok(Self {
            folder,
            postgres,
            keep: plane.keeps_folder(),
            ..Self::from_pid(std::process::id())?
        })
    }

    /// The state of a process that has just started. It removes its own files from the disk.
    fn from_pid(pid: u32) -> Result<Self> {
        let started =
            started(pid).context("reading the start time of the control plane's process")?;
        Ok(Self { pid, started, folder: None, postgres: None, keep: false })
    }

    /// Writes the state file.
    pub fn write(&self) -> Result<()> {
        // A reader finds the whole file or no file.
        let new = file().with_extension("new");
        fs::write(&new, serde_json::to_string_pretty(self)?)?;
        fs::rename(new, file()).context("writing the state of the control plane")
    }

    /// Reads the state file, whether or not it is still true.
    pub fn read() -> Result<Option<Self>> {
        if !file().is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(file())?;
        let read = serde_json::from_str(&text);
        read.with_context(|| {
            format!("{} is not a state of `cargo xtask up`. Delete the file", file().display())
        })
        .map(Some)
    }

    /// The error for a second control plane.
    fn already_running(&self) -> String {
        let place = self.folder.as_ref().map_or("still starting".to_owned(), |folder| {
            format!("in the folder {}", folder.display())
        });
        format!(
            "a control plane is already running: process {}, {place}. Stop it with `cargo xtask \
             down`",
            self.pid
        )
    }

    /// Ends it, and waits until all its processes and files are gone.
    pub async fn end(&self) -> Result<()> {
        let start = Instant::now();
        if self.is_running() {
            self.signal(Signal::TERM);
            while self.is_running() && start.elapsed() < GRACE {
                sleep(Duration::from_millis(100)).await;
            }
            // Its child processes end with it.
            if self.is_running() {
                self.signal(Signal::KILL);
            }
            println!(
                "stopped process {} and its child processes in {:.1} s",
                self.pid,
                start.elapsed().as_secs_f64()
            );
        } else {
            println!("process {} had already ended", self.pid);
        }
        let folders = [self.folder.as_ref().filter(|_| !self.keep), self.postgres.as_ref()];
        for folder in folders.into_iter().flatten().filter(|folder| folder.is_dir()) {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        match fs::remove_file(file()) {
            // Another command has removed it, too.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            forgotten => forgotten.context("removing the state of the control plane"),
        }
    }

    fn is_running(&self) -> bool {
        started(self.pid).is_some_and(|started| started == self.started)
    }

    /// Signals the process, and the processes that it waits for: Go builds tools for minutes. The
    /// programs of the control plane are in other groups.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid.cast_signed()) {
            // The process may end at this moment.
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// Starts this program in the background, shows its output, and returns when it is ready. If
/// interrupted before, it ends that program.
pub async fn start(args: &Args, told: impl Future<Output = ()>) -> Result<()> {
    fs::create_dir_all(background())?;
    let starting = fs::File::create(background().join("lock"))?;
    // The lock prevents a second start until the state file exists. It ends with the open file.
    ensure!(starting.try_lock().is_ok(), "another control plane is starting");
    if let Some(state) = State::read()? {
        ensure!(!state.is_running(), "{}", state.already_running());
        // Remove the remains of an ended control plane, so that they are not taken for the new one.
        state.end().await?;
    }
    let log = background().join("log");
    let child = spawn(args, fs::File::create(&log)?)?;
    let state = State::from_pid(child.id())?;
    state.write()?;
    drop(starting);
    let followed = tokio::select! {
        followed = follow(child, &log) => followed,
        () = told => Err(anyhow!("interrupted")),
    };
    if followed.is_err() {
        state.end().await?;
    }
    followed
}

/// Starts it outside the process group that a terminal interrupts.
fn spawn(args: &Args, output: fs::File) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["up", "--background", "--replicas", &args.replicas.to_string()]);
    command.args(["--pace", &args.pace.to_string()]);
    let core = args.core_version.to_possible_value();
    command.args(core.iter().flat_map(|core| ["--core-version", core.get_name()]));
    command.args(
        args.packages.iter().flat_map(|folder| [OsStr::new("--packages"), folder.as_os_str()]),
    );
    command.args(args.no_install.then_some("--no-install"));
    command.args(args.chart.then_some("--chart"));
    command.args(args.keep.then_some("--keep"));
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
    command.spawn().context("starting the control plane")
}

async fn follow(mut child: Child, log: &std::path::Path) -> Result<()> {
    let mut shown = 0;
    loop {
        let ready = State::read()?.is_some_and(|state| state.folder.is_some());
        let ended = child.try_wait()?;
        let text = fs::read_to_string(log).unwrap_or_default();
        print!("{}", text.get(shown..).unwrap_or_default());
        shown = text.len();
        if let Some(status) = ended {
            bail!("the control plane has ended: {status}");
        }
        if ready {
            println!("The control plane runs until `cargo xtask down`.");
            return Ok(());
        }
        sleep(Duration::from_millis(200)).await;
    }
}

fn file() -> PathBuf {
    background().join("state.json")
}

/// When a process started: the 22nd field of its `stat`. None for a zombie process.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name in brackets, may have any content.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    fields.nth(18).filter(|_| state != "Z").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_id_and_its_start() {
        let own = std::process::id();
        assert!(started(own).is_some_and(|ticks| ticks.parse::<u64>().is_ok()));
        assert_eq!(started(u32::MAX), None);
        let other =
            State { pid: own, started: "1".to_owned(), folder: None, postgres: None, keep: false };
        assert!(!other.is_running(), "another process had this id before");
    }
}
