//! Checks of an environment: the checks of the schema, and checks that a schema cannot express.

use super::frontend::{BUCKET, BUCKET_PREFIX};
use super::{Backend, PORTS, REPLICAS, UnifiedEnvironment, place};
use crate::check::{self, Fields, Refused, kubernetes};
use crate::compose::Composer;
use crate::error::Error;

/// Maximum number of a backend's environment variables.
pub(super) const MOST_VARIABLES: usize = 100;

/// The longest value of an environment variable, in characters.
pub(super) const LONGEST_VALUE: usize = 4096;

/// The longest name of a site. A bucket `acme-mfe-<app>-<8 of the uid>` has at most 63 characters.
/// Such a name cannot have a beginning or an end that S3 reserves.
pub(super) const LONGEST_APP: usize = 45;

/// The variables for the database. Users must not set them.
const OURS: [&str; 6] = ["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "DATABASE_URL"];

impl UnifiedEnvironment {
    /// Checks every field: the checks of the schema, and further checks.
    pub(super) fn check(&self, cx: &Composer<'_>) -> Result<(), Error> {
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
        fields.check("spec.frontend.kind", self.frontend.check_kind(cx));
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

/// The app in the name of the existing bucket. A bucket that a person named differently has no app.
fn running_app(cx: &Composer<'_>) -> Option<String> {
    let bucket = cx.external_name(BUCKET)?;
    let app = bucket.strip_prefix(BUCKET_PREFIX)?.strip_suffix(&cx.xr.uid(8))?.strip_suffix('-')?;
    Some(app.to_owned())
}

/// Checks a variable's value. The error does not show the value, which may be a secret by mistake.
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

/// The allowed names of a site, for messages.
const APPS: &str =
    "1 to 45 lowercase letters, digits and hyphens, starting and ending with a letter or digit";

fn is_app(name: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(edge) && name.ends_with(edge) && name.chars().all(|c| edge(c) || c == '-')
}
