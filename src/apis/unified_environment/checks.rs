//! What an environment may be: every check of the schema, and those that no schema can express.

use super::frontend::{BUCKET, BUCKET_PREFIX};
use super::{Backend, UnifiedEnvironment};
use crate::check::{self, Refused, kubernetes};
use crate::compose::Composition;
use crate::error::Error;

/// The most environment variables that a backend may be given.
pub(super) const MOST_VARIABLES: usize = 100;

/// The longest value of an environment variable, in characters.
pub(super) const LONGEST_VALUE: usize = 4096;

/// The longest name of a site: a bucket `acme-mfe-<app>-<8 of the uid>` has 63 characters at most. What S3 keeps for itself at
/// the beginning and the end of a bucket's name cannot come about.
pub(super) const LONGEST_APP: usize = 45;

/// The variables that lead to the database: nobody else sets them.
const OURS: [&str; 6] = ["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "DATABASE_URL"];

impl UnifiedEnvironment {
    /// Every field, as the schema says it and beyond.
    pub(super) fn check(&self, cx: &Composition<'_>) -> Result<(), Error> {
        self.backend.check()?;
        let app = &self.frontend.app_name;
        check::shape(app, LONGEST_APP, is_app, APPS)
            .and_then(|app| check::unchanged(app, running_app(cx).as_deref(), "make a new environment"))
            .map_err(|error| Error::spec("spec.frontend.appName", error))
    }
}

impl Backend {
    fn check(&self) -> Result<(), Error> {
        let wrong = |name: &str| {
            let path = format!("spec.backend.{name}");
            move |error: Refused| Error::spec(path, error)
        };
        kubernetes::image(&self.image).map_err(wrong("image"))?;
        check::range(self.port, 1..=65535, "").map_err(wrong("port"))?;
        check::range(self.replicas, 0..=100, "replicas").map_err(wrong("replicas"))?;
        if self.env.len() > MOST_VARIABLES {
            let found = format!("{} variables", self.env.len());
            return Err(wrong("env")(Refused { found, allowed: format!("at most {MOST_VARIABLES}") }));
        }
        for (name, value) in &self.env {
            let path = check::shown(&format!("env.{name}"));
            variable(name).map_err(wrong(&path))?;
            // A value may be a secret that does not belong here: it is not shown.
            if value.chars().nth(LONGEST_VALUE).is_some() || value.contains('\0') {
                let found = format!("a text of {} characters", value.chars().count());
                let allowed = format!("at most {LONGEST_VALUE} characters, none of them NUL");
                return Err(wrong(&path)(Refused { found, allowed }));
            }
        }
        Ok(())
    }
}

/// The app that the bucket which exists was named after; a bucket that somebody named otherwise tells nothing.
fn running_app(cx: &Composition<'_>) -> Option<String> {
    let bucket = cx.external_name(BUCKET)?;
    let app = bucket.strip_prefix(BUCKET_PREFIX)?.strip_suffix(&cx.xr.uid(8))?.strip_suffix('-')?;
    Some(app.to_owned())
}

fn variable(name: &str) -> Result<(), Refused> {
    kubernetes::variable(name)?;
    if OURS.contains(&name) {
        let allowed =
            format!("any name but {}: these lead to the environment's own database", OURS.join(", "));
        return Err(Refused::new(name, allowed));
    }
    Ok(())
}

/// What a site may be called, in words.
const APPS: &str =
    "1 to 45 lower-case letters, digits and hyphens, beginning and ending with a letter or digit";

fn is_app(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(edge) && name.ends_with(edge) && name.chars().all(|c| edge(c) || c == '-')
}
