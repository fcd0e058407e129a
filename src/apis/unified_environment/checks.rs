//! What an environment may be: every check of the schema, and those that no schema can express.

use super::frontend::{BUCKET, BUCKET_PREFIX};
use super::{Backend, PORTS, REPLICAS, UnifiedEnvironment, place};
use crate::check::{self, Fields, Refused, kubernetes};
use crate::compose::Composition;
use crate::error::Error;

/// The most environment variables that a backend may be given.
pub(super) const MOST_VARIABLES: usize = 100;

/// The longest value of an environment variable, in characters.
pub(super) const LONGEST_VALUE: usize = 4096;

/// The longest name of a site: a bucket `acme-mfe-<app>-<8 of the uid>` has 63 characters at most.
/// What S3 keeps for itself at the beginning and the end of a bucket's name cannot come about.
pub(super) const LONGEST_APP: usize = 45;

/// The variables that lead to the database: nobody else sets them.
const OURS: [&str; 6] = ["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "DATABASE_URL"];

impl UnifiedEnvironment {
    /// Every field, as the schema says it and beyond.
    pub(super) fn check(&self, cx: &Composition<'_>) -> Result<(), Error> {
        let mut fields = Fields::default();
        self.backend.check(&mut fields);
        let app =
            check::shape(&self.frontend.app_name, LONGEST_APP, is_app, APPS).and_then(|app| {
                check::unchanged(
                    app,
                    running_app(cx).as_deref(),
                    "create a new \
                environment",
                )
            });
        fields.check("spec.frontend.appName", app);
        fields.check("metadata.name", place::check_name(&cx.xr));
        fields.verdict(Error::InvalidSpec)
    }
}

impl Backend {
    fn check(&self, fields: &mut Fields) {
        fields.check("spec.backend.image", kubernetes::image(&self.image));
        fields.check("spec.backend.port", check::range(self.port, PORTS, ""));
        fields.check("spec.backend.replicas", check::range(self.replicas, REPLICAS, "replicas"));
        if self.env.len() > MOST_VARIABLES {
            let found = format!("{} variables", self.env.len());
            let refused = Refused { found, allowed: format!("at most {MOST_VARIABLES}") };
            return fields.refuse("spec.backend.env", refused);
        }
        for (name, value) in &self.env {
            let path = check::shown(&format!("env.{name}"));
            fields.check(
                format!("spec.backend.{path}"),
                variable(name).and_then(|()| content(value)),
            );
        }
    }
}

/// The app that the bucket which exists was named after; a bucket that somebody named otherwise
/// tells nothing.
fn running_app(cx: &Composition<'_>) -> Option<String> {
    let bucket = cx.external_name(BUCKET)?;
    let app = bucket.strip_prefix(BUCKET_PREFIX)?.strip_suffix(&cx.xr.uid(8))?.strip_suffix('-')?;
    Some(app.to_owned())
}

/// A variable's value, which may be a secret that does not belong here: it is not shown.
fn content(value: &str) -> Result<(), Refused> {
    if value.chars().nth(LONGEST_VALUE).is_none() && !value.contains('\0') {
        return Ok(());
    }
    let found = format!("a text with {} characters", value.chars().count());
    Err(Refused { found, allowed: format!("at most {LONGEST_VALUE} characters without NUL") })
}

fn variable(name: &str) -> Result<(), Refused> {
    kubernetes::variable(name)?;
    if OURS.contains(&name) {
        let allowed = format!(
            "any name except {}, which Paved Road sets for the environment's database",
            OURS.join(", ")
        );
        return Err(Refused::new(name, allowed));
    }
    Ok(())
}

/// What a site may be called, in words.
const APPS: &str =
    "1 to 45 lowercase letters, digits and hyphens, starting and ending with a letter or digit";

fn is_app(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(edge) && name.ends_with(edge) && name.chars().all(|c| edge(c) || c == '-')
}
