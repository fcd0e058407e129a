//! A child process: its start, its log and its end.

use std::{
    fs::{self, File, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

/// How long a program may take to end after a SIGTERM.
const GRACE: Duration = Duration::from_secs(20);

/// The number of log lines in an error message.
const LAST_LINES: usize = 15;

/// A program with its arguments and environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name here, for example `crossplane`. Its log is `<name>.log`.
    pub name: String,
    path: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Program {
    /// A program without arguments.
    pub fn new(name: impl Into<String>, path: &Path) -> Self {
        Self { name: name.into(), path: path.to_owned(), args: Vec::new(), env: Vec::new() }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item: Into<String>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Runs it to its end in `folder` and returns its output. An error quotes its standard error.
    pub async fn output(&self, folder: &Path) -> Result<String> {
        let mut command = tokio::process::Command::new(&self.path);
        command.args(&self.args).envs(self.env.iter().cloned()).current_dir(folder);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let answer =
            command.output().await.with_context(|| format!("starting {}", self.path.display()))?;
        let complaint = String::from_utf8_lossy(&answer.stderr);
        ensure!(
            answer.status.success(),
            "{} {}: {}",
            self.name,
            self.args.join(" "),
            complaint.trim()
        );
        String::from_utf8(answer.stdout)
            .with_context(|| format!("{} printed output that is not UTF-8", self.name))
    }
}

/// A program that runs until it is stopped. It also ends when this process ends, for any reason.
#[derive(Debug)]
pub struct Process {
    program: Program,
    folder: PathBuf,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// Starts a program in `folder`, with its log in `logs`.
    pub fn start(program: Program, folder: &Path, logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{}.log", program.name));
        let process = Self { program, folder: folder.to_owned(), log, child: Mutex::new(None) };
        process.start_again()?;
        Ok(process)
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// The path of its log, with all output since its first start.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        self.child().as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Starts it again. Returns an error if it still runs.
    pub fn start_again(&self) -> Result<()> {
        ensure!(!self.is_running(), "{} is already running", self.name());
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let child =
            spawn(self.command(log)?).with_context(|| format!("starting {}", self.name()))?;
        *self.child() = Some(child);
        Ok(())
    }

    /// Asks it to end and waits for the end. Kills it if the end takes too long.
    pub async fn stop(&self) {
        if let Some(pid) = self.pid().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // The process may have ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
        let start = Instant::now();
        while self.is_running() && start.elapsed() < GRACE {
            sleep(Duration::from_millis(50)).await;
        }
        self.kill();
    }

    /// Kills it at once, as `kill -9` does.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Its resident memory in KiB, while it runs.
    pub fn memory(&self) -> Option<u64> {
        self.status("VmRSS:")
    }

    /// Its peak resident memory in KiB, while it runs.
    pub fn peak_memory(&self) -> Option<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    }

    /// The processor time that it has used, while it runs: fields 14 and 15 of `/proc/PID/stat`, in
    /// ticks.
    pub fn cpu_time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
    }

    /// The last lines of its log.
    pub fn last_lines(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Waits until `check` returns true. If the process ends before, or takes longer than `limit`,
    /// returns an error with the last lines of its log.
    pub async fn ready(&self, limit: Duration, mut check: impl AsyncFnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        loop {
            if check().await {
                return Ok(());
            }
            if !self.is_running() {
                bail!("{} has ended. The end of its log:\n{}", self.name(), self.last_lines());
            }
            if start.elapsed() > limit {
                bail!(
                    "{} is not ready after {} s. The end of its log:\n{}",
                    self.name(),
                    limit.as_secs(),
                    self.last_lines()
                );
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command, in its own process group, so that Ctrl-C reaches only this process.
    fn command(&self, log: File) -> Result<Command> {
        use std::os::unix::process::CommandExt;
        let program = &self.program;
        let mut command = bound(&program.path);
        command.args(&program.args).envs(program.env.iter().cloned()).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        Ok(command)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program's command. The kernel kills the program when this process ends, even after a `kill
/// -9`.
pub fn bound(program: &Path) -> Command {
    if !cfg!(target_os = "linux") {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Starts a program from a thread that lives as long as this process. The kernel kills the program
/// when the thread that started it ends.
pub fn spawn(command: Command) -> Result<Child> {
    type Order = (Command, mpsc::Sender<std::io::Result<Child>>);
    static STARTER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                // The receiver may be gone.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (answer, child) = mpsc::channel();
    starter.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer))?;
    Ok(child.recv()??)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    fn shell(folder: &Path, script: &str) -> Process {
        let program = Program::new("shell", Path::new("/bin/sh")).args(["-c", script]);
        Process::start(program, folder, folder).unwrap()
    }

    #[tokio::test]
    async fn process_that_ends_early_is_reported_with_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let process = shell(folder.path(), "echo no such flag >&2; exit 3");
        let error = process.ready(Duration::from_secs(30), async || false).await.unwrap_err();
        assert_eq!(error.to_string(), "shell has ended. The end of its log:\nno such flag");
    }

    #[tokio::test]
    async fn killed_process_starts_again_and_keeps_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let process = shell(folder.path(), "echo begun; exec sleep 60");
        let begun = async |times: usize| process.last_lines().matches("begun").count() == times;
        process.ready(Duration::from_secs(30), async || begun(1).await).await.unwrap();
        assert!(process.start_again().is_err(), "it runs");
        let first = process.pid().unwrap();
        process.kill();
        assert!(!process.is_running() && process.pid().is_none());
        process.start_again().unwrap();
        process.ready(Duration::from_secs(30), async || begun(2).await).await.unwrap();
        assert_ne!(process.pid().unwrap(), first);
        process.stop().await;
        assert!(!process.is_running());
    }
}
