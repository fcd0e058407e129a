//! An environment as a tree: a head, a line for each resource, and the status fields.

use std::io::{self, Write};

use function_paved_road::compose::ResourceStatus;
use function_paved_road::diagnosis::Cause;
use jiff::Timestamp;
use paved_client::environment::{Diagnosis, Environment, age};
use serde_json::Value;

use crate::style::{self, BOLD, DIM, Leaf, Mark, harmless, one_line, style_of};

/// Prints the environment. `wide` also shows names in the cluster and whole messages.
pub(crate) fn tree(
    seen: &Environment,
    now: Timestamp,
    wide: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(seen, now, out)?;
    style::tree(&leaves(seen, now, wide), out)?;
    if wide {
        for part in seen.parts.iter().filter(|part| part.message.is_some()) {
            let message = part.message.as_deref().unwrap_or_default();
            writeln!(out, "  {BOLD}{}:{BOLD:#} {}", part.slot, message.replace('\n', " "))?;
        }
    }
    outcome(seen, out)
}

/// Prints kind, name, phase, progress and age. Below are the cause, the remediation and the
/// environment's message.
fn head(seen: &Environment, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let style = style_of(seen.mark());
    let word = seen.word();
    write!(out, "{BOLD}{}{BOLD:#}  {style}{word}{style:#}", seen.title())?;
    if !seen.progress.is_empty() {
        write!(out, " {}", seen.progress)?;
    }
    let since = seen.deleted.or(seen.created);
    writeln!(out, "  {DIM}{}{DIM:#}", age(since, now))?;
    let diagnosis = seen.diagnosis().filter(|diagnosis| diagnosis.counts(now));
    if let Some(Diagnosis { cause, slot, .. }) = &diagnosis {
        let slot = slot.as_ref().map(|slot| format!("{slot}: ")).unwrap_or_default();
        writeln!(out, "│ {BOLD}{slot}{}{BOLD:#}", cause.headline())?;
        if cause.code.is_waiting() {
            return Ok(());
        }
        writeln!(out, "│ {}", cause.remediation())?;
    }
    match seen.sentence() {
        "" => Ok(()),
        sentence => writeln!(out, "│ {}", sentence.replace('\n', " ")),
    }
}

/// A line for each resource: slot, kind, state, age, and ID in the cloud.
fn leaves(seen: &Environment, now: Timestamp, wide: bool) -> Vec<Leaf> {
    let leaf = |part: &ResourceStatus| {
        let state = part
            .reason
            .clone()
            .unwrap_or_else(|| if part.ready { "Ready" } else { "Pending" }.to_owned());
        let mark = match (part.reason.as_deref(), part.ready) {
            (Some("Failed" | "NotAccepted"), _) => Mark::Bad,
            (_, true) => Mark::Good,
            (_, false) => Mark::Busy,
        };
        let since = age(part.since.parse().ok(), now);
        let id = part.external_name.clone().unwrap_or_default();
        let mut cells = vec![part.slot.clone(), part.kind.clone(), state, since, id];
        if wide {
            cells.push(part.name.clone().unwrap_or_default());
        }
        // A wide tree shows the whole messages below.
        let message = || part.message.as_deref().map(one_line);
        let note = part.cause.as_ref().map(Cause::headline).or_else(message);
        let note = note.filter(|_| !wide).unwrap_or_default();
        Leaf { mark, cells, note }
    };
    seen.parts.iter().map(leaf).collect()
}

/// Prints the status fields of the API.
pub(crate) fn outcome(seen: &Environment, out: &mut dyn Write) -> io::Result<()> {
    let width = seen.fields.keys().map(|field| field.chars().count() + 1).max().unwrap_or(0);
    for (field, value) in &seen.fields {
        let shown = match value {
            Value::String(text) => harmless(text),
            Value::Object(_) | Value::Array(_) => harmless(&value.to_string()),
            value => value.to_string(),
        };
        writeln!(out, "  {BOLD}{:width$}{BOLD:#} {shown}", format!("{field}:"))?;
    }
    if let Some(command) = seen.connect() {
        writeln!(out, "  {DIM}from your machine:{DIM:#} {command}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::{environment, ready};
    use serde_json::json;

    use super::*;

    #[test]
    fn outcome_names_the_command_that_connects() {
        let mut object = ready();
        object["kind"] = json!("Environment");
        object["status"]["url"] = json!("https://ada.team-vision.svc:443");
        let mut told = Vec::new();
        outcome(&environment(&object), &mut told).unwrap();
        assert!(String::from_utf8(told).unwrap().contains("paved connect ada -n team-vision"));
    }
}
