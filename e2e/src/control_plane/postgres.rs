//! A PostgreSQL server for one test: Debian's program, on a free port of loopback.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use std::os::unix::process::CommandExt;
use tempfile::TempDir;
use tokio_postgres::NoTls;

use super::{pki, ports, process};

/// The superuser's name.
const SUPERUSER: &str = "postgres";
/// The users that can run the server if the test runs as root, because the server refuses root.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];
/// Debian's folder of the programs, by version.
const DEBIAN: &str = "/usr/lib/postgresql";
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A running server. Drop stops it and deletes its data.
pub struct Postgres {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The superuser's password.
    pub password: String,
    server: Child,
    programs: Programs,
    data: TempDir,
}

/// The folder of the programs, and the user that runs them, if not the test's own.
struct Programs {
    folder: PathBuf,
    user: Option<(u32, u32)>,
}

impl Postgres {
    /// Creates a server and waits until it answers. Its log is `postgres.log` in `folder`. Its data
    /// are in a separate folder, which users other than root can reach.
    pub async fn start(folder: &Path) -> Result<Self> {
        let programs = Programs::find()?;
        let data = tempfile::Builder::new()
            .prefix("postgres-")
            .tempdir()
            .context("cannot make a folder")?;
        let port = ports::free()?;
        let password = pki::secret();
        programs.own(data.path())?;
        let log = folder.join("postgres.log");
        programs.initialise(data.path(), &password, &log)?;
        let server = programs.serve(data.path(), port, &log)?;
        let mut postgres = Self { port, password, server, programs, data };
        postgres.ready(&log).await?;
        Ok(postgres)
    }

    /// The superuser's connection string.
    pub fn url(&self) -> String {
        format!("postgres://{SUPERUSER}:{}@127.0.0.1:{}", self.password, self.port)
    }

    /// The names of all databases and roles.
    pub async fn names(&self) -> Result<BTreeSet<String>> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await?;
        let connection = tokio::spawn(connection);
        let names =
            "select datname::text from pg_database union select rolname::text from pg_roles";
        let rows = client.query(names, &[]).await?;
        connection.abort();
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The folder of its data.
    pub fn folder(&self) -> &Path {
        self.data.path()
    }

    async fn ready(&mut self, log: &Path) -> Result<()> {
        let start = Instant::now();
        loop {
            let Err(error) = tokio_postgres::connect(&self.url(), NoTls).await else {
                return Ok(());
            };
            let said = || fs::read_to_string(log).unwrap_or_default();
            if let Some(status) = self.server.try_wait()? {
                bail!("postgres ended with {status}:\n{}", said());
            }
            ensure!(
                start.elapsed() < START_TIMEOUT,
                "postgres does not answer ({error}):\n{}",
                said()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut stop = self.programs.command("pg_ctl");
        stop.args(["stop", "--mode=immediate", "--wait", "--silent", "--pgdata"])
            .arg(self.data.path());
        let stopped = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !stopped.is_ok_and(|status| status.success()) {
            // The server has ended already, or never started.
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
    }
}

impl Programs {
    fn find() -> Result<Self> {
        let in_path = std::env::var_os("PATH")
            .into_iter()
            .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
        let versions = fs::read_dir(DEBIAN)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("bin"));
        let has_all = |folder: &PathBuf| {
            ["initdb", "postgres", "pg_ctl"].iter().all(|program| folder.join(program).is_file())
        };
        let folder = versions.chain(in_path).find(has_all).with_context(|| {
            format!(
                "found no initdb, postgres and pg_ctl in {DEBIAN} or in PATH. Install \
                     PostgreSQL (apt install postgresql)"
            )
        })?;
        Ok(Self { folder, user: unprivileged()? })
    }

    fn command(&self, program: &str) -> Command {
        self.as_user(Command::new(self.folder.join(program)))
    }

    fn as_user(&self, mut command: Command) -> Command {
        command.current_dir("/").stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Gives a file or a folder to the user that the server runs as.
    fn own(&self, path: &Path) -> Result<()> {
        let Some((user, group)) = self.user else { return Ok(()) };
        chown(path, Some(user), Some(group))
            .with_context(|| format!("cannot change the owner of {}", path.display()))
    }

    fn initialise(&self, data: &Path, password: &str, log: &Path) -> Result<()> {
        let secret = tempfile::NamedTempFile::new()?;
        fs::write(secret.path(), password)?;
        self.own(secret.path())?;
        let mut initdb = self.command("initdb");
        initdb.args([
            "--username",
            SUPERUSER,
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        initdb.arg("--pwfile").arg(secret.path()).arg("--pgdata").arg(data);
        let status = initdb.stdout(Stdio::null()).stderr(fs::File::create(log)?).status()?;
        ensure!(
            status.success(),
            "initdb failed:\n{}",
            fs::read_to_string(log).unwrap_or_default()
        );
        Ok(())
    }

    fn serve(&self, data: &Path, port: u16, log: &Path) -> Result<Child> {
        let mut server = self.as_user(process::bound(&self.folder.join("postgres")));
        server.arg("-D").arg(data).args(["-p", &port.to_string()]);
        let settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=300",
            "fsync=off",
            "full_page_writes=off",
        ];
        server.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let log = fs::File::options().append(true).open(log)?;
        server.stdout(Stdio::null()).stderr(log);
        process::spawn(server).context("cannot start postgres")
    }
}

/// The user and group of the server. None if the test does not run as root.
fn unprivileged() -> Result<Option<(u32, u32)>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").context("cannot read the users")?;
    let found = UNPRIVILEGED.iter().find_map(|name| {
        let mut fields =
            users.lines().find(|line| line.split(':').next() == Some(name))?.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    let names = UNPRIVILEGED.join(" or ");
    found
        .map(Some)
        .with_context(|| format!("postgres does not run as root. Create the user {names}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    #[tokio::test]
    async fn server_requires_its_password_and_stops_with_its_owner() {
        if Programs::find().is_err() {
            eprintln!("skipped: PostgreSQL is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let postgres = Postgres::start(folder.path()).await.unwrap();
        let (url, data) = (postgres.url(), postgres.data.path().to_owned());
        let wrong = url.replace(&postgres.password, "guessed");
        assert!(tokio_postgres::connect(&wrong, NoTls).await.is_err());
        assert!(tokio_postgres::connect(&url, NoTls).await.is_ok());
        drop(postgres);
        assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
        assert!(!data.exists());
    }
}
