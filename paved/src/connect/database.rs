//! A PostgreSQL database: the command that opens it, and its variables.

use std::net::IpAddr;

use super::Target;
use super::connection_secret::ConnectionSecret;
use super::shell::{quote, quoted};
use crate::Console;
use crate::cli::{Connect, Export, Printed};
use crate::failure::Failure;
use crate::stream::has_command;
use crate::style::{BOLD, DIM};

/// Address and credentials of a database.
struct Way {
    host: String,
    port: String,
    user: String,
    password: String,
    name: String,
}

/// The text in place of a password. No character of it needs an escape in a URL.
const MASK: &str = "****";

/// Prints the command or the variables. The password appears only at the caller's request.
pub(super) async fn connect(
    target: &Target,
    args: &Connect,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let way = Way::from_details(&target.details().await?)?;
    if let Some(format) = args.export {
        let variables = way.variables();
        // No quoting in a dotenv file works for every reader, and a stream would break up such a
        // value.
        let is_command = |(name, value): &&(&str, String)| {
            format == Export::Dotenv && has_command(&format!("{name}={value}"))
        };
        if let Some((name, _)) = variables.iter().find(is_command) {
            return Err(Failure::Provisioning {
                what: "the Secret with the connection details".to_owned(),
                message: format!(
                    "has ##[ or ##v in the value of {name}, which a pipeline reads as a command. \
                     Use --export=shell"
                ),
            });
        }
        for (name, value) in variables {
            match format {
                Export::Shell => writeln!(console.out, "export {name}={}", quote(&value))?,
                Export::Dotenv => writeln!(console.out, "{name}={value}")?,
            }
        }
        return Ok(());
    }
    let command = quoted(&way.command());
    let shown = if args.show_secrets { escaped(&way.password) } else { MASK.to_owned() };
    let url = way.url(&shown);
    if let Some(printed) = args.print {
        let line = if printed == Printed::Url { url } else { command };
        writeln!(console.out, "{line}")?;
        return Ok(());
    }
    writeln!(console.out, "{BOLD}{}{BOLD:#}", target.environment.title())?;
    if args.show_secrets {
        writeln!(console.out, "PGPASSWORD={} {command}", quote(&way.password))?;
        writeln!(console.out, "{url}")?;
    } else {
        writeln!(console.out, "{command}")?;
        writeln!(console.out, "{url}")?;
        writeln!(console.out, "use --export or --show-secrets to print the password")?;
    }
    writeln!(
        console.out,
        "{DIM}{} is only reachable from the environment's network{DIM:#}",
        way.host
    )?;
    Ok(())
}

impl Way {
    /// Reads a Secret with the keys of a unified environment, or of an application environment.
    fn from_details(details: &ConnectionSecret) -> Result<Self, Failure> {
        let text = |keys: &[&str]| details.line(keys).map(str::to_owned);
        let port = text(&["port", "db_port"])?;
        let address = text(&["endpoint", "db_address"])?;
        // RDS's own endpoint is HOST:PORT.
        let host = address.strip_suffix(&format!(":{port}")).unwrap_or(&address).to_owned();
        if port.parse::<u16>().is_err() || !is_host(&host) {
            return Err(Failure::Provisioning {
                what: "the Secret with the connection details".to_owned(),
                message: format!(
                    "has the host {host:?} and the port {port:?}; allowed: a host name or IP \
                     address, and a port. Ask your platform team who changed the Secret"
                ),
            });
        }
        Ok(Self {
            host,
            port,
            user: text(&["username", "db_user"])?,
            password: text(&["password", "db_password"])?,
            name: text(&["database", "db_name"])?,
        })
    }

    fn command(&self) -> Vec<String> {
        let Self { host, port, user, name, .. } = self;
        let (user, name) = (conninfo(user), conninfo(name));
        let all = format!("host={host} port={port} user={user} dbname={name} sslmode=require");
        vec!["psql".to_owned(), all]
    }

    /// The variables of libpq, and one URL for other programs.
    fn variables(&self) -> [(&'static str, String); 7] {
        let Self { host, port, user, password, name } = self;
        [
            ("PGHOST", host.clone()),
            ("PGPORT", port.clone()),
            ("PGUSER", user.clone()),
            ("PGPASSWORD", password.clone()),
            ("PGDATABASE", name.clone()),
            ("PGSSLMODE", "require".to_owned()),
            ("DATABASE_URL", self.url(&escaped(password))),
        ]
    }

    /// The URL with a password, which is already escaped.
    fn url(&self, password: &str) -> String {
        let Self { host, port, user, name, .. } = self;
        let in_url = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        format!(
            "postgresql://{}:{password}@{in_url}:{port}/{}?sslmode=require",
            escaped(user),
            escaped(name)
        )
    }
}

/// Whether a text is a host name or an IP address. Such a text needs no quotes in a URL or in
/// libpq's connection string.
fn is_host(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !text.is_empty() && text.chars().all(name) && !text.starts_with('-');
    is_name || text.parse::<IpAddr>().is_ok()
}

/// Quotes a value for libpq's connection strings.
fn conninfo(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._@".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

/// Escapes a text for a URL (RFC 3986).
fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}
