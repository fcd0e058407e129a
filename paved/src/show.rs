//! An environment as a tree: a head, a line for each resource, and the status fields.

use std::io::{self, Write};

use function_paved_road::apis::{self, AnyApi};
use function_paved_road::diagnosis::{Cause, Code};
use function_paved_road::power::PowerState;
use function_paved_road::status::{ResourceStatus, StopReason};
use jiff::Timestamp;
use paved_client::environment::{
    Diagnosis, Environment, Lifecycle, age, is_refused, power_word, until,
};
use serde_json::Value;

use crate::Console;
use crate::style::{
    self, BOLD, DIM, Leaf, Mark, command, harmless, harmless_name, one_line, sign_of, style_of,
};

/// The kinds of resources that only keep an order or give access to a provider.
const HELPERS: [&str; 3] = ["ClusterProviderConfig", "ProviderConfig", "Usage"];

/// The status field with a command.
const CONNECTION: &str = "connection";

/// How much of an environment is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// For a terminal: resources that need attention, and the number of the others.
    Folded,
    /// Every resource on its line.
    Whole,
    /// Every resource with its names in the cluster, and whole messages.
    Wide,
}

impl View {
    /// The view of a command with or without `-o wide`.
    pub(crate) fn new(is_wide: bool, console: &Console<'_>) -> Self {
        match (is_wide, &console.terminal) {
            (true, _) => Self::Wide,
            (false, Some(_)) => Self::Folded,
            (false, None) => Self::Whole,
        }
    }
}

/// Prints the environment.
pub(crate) fn tree(
    seen: &Environment,
    now: Timestamp,
    view: View,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(seen, now, view, out)?;
    if view == View::Folded {
        folded(seen, now, out)?;
        return if seen.is_ready() {
            outcome(seen, now, out)
        } else {
            print(lifecycle(seen, now), out)
        };
    }
    let wide = view == View::Wide;
    style::tree(&leaves(seen, now, wide), out)?;
    if wide {
        for part in seen.parts.iter().filter(|part| part.message.is_some()) {
            let message = part.message.as_deref().unwrap_or_default();
            writeln!(out, "  {BOLD}{}:{BOLD:#} {}", part.slot, message.replace('\n', " "))?;
        }
    }
    outcome(seen, now, out)
}

/// Prints kind, name, phase, progress and age. Below are the cause, the remediation and the
/// environment's message.
fn head(seen: &Environment, now: Timestamp, view: View, out: &mut dyn Write) -> io::Result<()> {
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
        // The sentence about an ordinary wait for another resource has only names of fields.
        if cause.code == Code::WaitsFor && !cause.params.is_empty() {
            return Ok(());
        }
        writeln!(out, "│ {}", cause.remediation())?;
    }
    match seen.sentence() {
        "" => Ok(()),
        sentence if view == View::Folded => writeln!(out, "│ {}", one_line(sentence)),
        sentence => writeln!(out, "│ {}", sentence.replace('\n', " ")),
    }
}

/// A line for each resource that is not ready, with its state first, and one line for all others.
fn folded(seen: &Environment, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let is_internal = |part: &&ResourceStatus| HELPERS.contains(&part.kind.as_str());
    let is_well = |part: &&ResourceStatus| part.ready && !is_refused(part);
    let (well, mut others): (Vec<_>, Vec<_>) = seen.parts.iter().partition(is_well);
    // A resource that failed is shown first. Internal resources are last.
    others.sort_by_key(|part| (!is_refused(part), is_internal(part)));
    let (internal, ready): (Vec<_>, Vec<_>) = well.into_iter().partition(is_internal);
    let (waiting_internal, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|part| is_internal(part) && !is_refused(part));
    let counts = [
        (ready.len(), "ready"),
        (internal.len(), "internal"),
        (waiting_internal.len(), "internal not ready yet"),
    ];
    let told: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let is_last = |place: usize| place + 1 == others.len() && told.is_empty();
    for (place, part) in others.iter().enumerate() {
        let branch = if is_last(place) { "└─" } else { "├─" };
        writeln!(out, "{branch} {}", line(part, now))?;
    }
    if !told.is_empty() {
        let mark = if waiting_internal.is_empty() { Mark::Good } else { Mark::Busy };
        let (style, sign) = (style_of(mark), sign_of(mark));
        writeln!(out, "└─ {style}{sign}{style:#} {}", told.join(" + "))?;
    }
    Ok(())
}

/// A resource: mark, state, slot, kind, age, and the reason.
fn line(part: &ResourceStatus, now: Timestamp) -> String {
    let mark = if is_refused(part) { Mark::Bad } else { Mark::Busy };
    let (style, sign) = (style_of(mark), sign_of(mark));
    let state = part.reason.as_deref().unwrap_or("Pending");
    let age = age(part.since.parse().ok(), now);
    let age = if age.is_empty() { age } else { format!(", {age}") };
    let message = || part.message.as_deref().map(one_line);
    let note = part.cause.as_ref().map(Cause::headline).or_else(message);
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    let (slot, kind) = (harmless_name(&part.slot), harmless_name(&part.kind));
    let (state, note) = (harmless_name(state), harmless_name(&note));
    format!("{style}{sign} {state}{style:#} {slot} ({kind}{age}){note}")
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

/// Prints the power state, the price, the end and the API's status fields of an environment.
pub(crate) fn outcome(seen: &Environment, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let fields = seen.fields.iter().map(|(field, value)| {
        let shown = match value {
            Value::String(text) => harmless(text),
            Value::Object(_) | Value::Array(_) => harmless(&value.to_string()),
            value => value.to_string(),
        };
        (field.as_str(), shown)
    });
    print(lifecycle(seen, now).into_iter().chain(fields).collect(), out)?;
    if let Some(text) = seen.connect() {
        writeln!(out, "  {DIM}from your machine:{DIM:#} {}", command(&text))?;
    }
    Ok(())
}

/// Prints aligned fields and values.
fn print(lines: Vec<(&str, String)>, out: &mut dyn Write) -> io::Result<()> {
    let width = lines.iter().map(|(field, _)| field.chars().count() + 1).max().unwrap_or(0);
    for (field, shown) in lines {
        let shown = if field == CONNECTION { command(&shown) } else { shown };
        writeln!(out, "  {BOLD}{:width$}{BOLD:#} {shown}", format!("{field}:"))?;
    }
    Ok(())
}

/// Prints the next command for an environment in this state, after it was shown in a view.
pub(crate) fn next(seen: &Environment, view: View, console: &mut Console<'_>) -> io::Result<()> {
    let (name, namespace) = (&seen.name, &seen.namespace);
    let api = apis::for_environment_kind(&seen.kind).map(AnyApi::info);
    let can_connect = api.is_some_and(|info| !info.connection_targets.is_empty());
    let verb = match seen.power {
        _ if seen.deleted.is_some() => format!("paved wait {name} -n {namespace} --for=deleted"),
        Some(PowerState::Stopped) => format!("paved start {name} -n {namespace}"),
        _ if seen.mark() == Mark::Bad && view == View::Wide => format!(
            "paved status {name} -n {namespace} -o yaml >{name}.yaml && ${{EDITOR:-vi}} {name}.yaml \
             && paved apply {name}.yaml"
        ),
        _ if seen.mark() == Mark::Bad => format!("paved status {name} -n {namespace} -o wide"),
        _ if !seen.is_ready() => format!("paved wait {name} -n {namespace}"),
        _ if can_connect => format!("paved connect {name} -n {namespace}"),
        _ => return Ok(()),
    };
    style::next(&verb, console)
}

/// Power state, price, last stop, expiry and deletion. All times are in UTC.
fn lifecycle(seen: &Environment, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut lines: Vec<_> =
        seen.power.map(|power| ("power", power_word(power).to_owned())).into_iter().collect();
    lines.extend(seen.price.as_ref().map(|price| ("price", price.to_string())));
    let Some(Lifecycle { expires_at, deletes_at, stopped_at, stop_reason, .. }) = seen.lifecycle
    else {
        return lines;
    };
    let time = |at: Timestamp| match until(at, now) {
        Some(left) => format!("{at}, in {left}"),
        None => format!("{at}, {} ago", age(Some(at), now)),
    };
    let reason = stop_reason.map(|reason| match reason {
        StopReason::Requested => ", by request",
        StopReason::Expired => ", because it expired",
        StopReason::Idle => ", because it was idle",
        StopReason::Interrupted => ", because the cloud interrupted its spot machine",
        StopReason::Unknown => ", for an unknown reason",
    });
    let reason = reason.unwrap_or_default();
    lines.extend(stopped_at.map(|at| ("stopped", time(at) + reason)));
    lines.extend(expires_at.map(|at| ("expires", time(at))));
    lines.extend(deletes_at.map(|at| ("deletion", time(at))));
    lines
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
        outcome(&environment(&object), Timestamp::UNIX_EPOCH, &mut told).unwrap();
        assert!(
            String::from_utf8(told).unwrap().contains(&command("paved connect ada -n team-vision"))
        );
    }

    #[test]
    fn lifecycle_has_absolute_times_and_the_time_left() {
        let mut object = ready();
        object["status"]["power"] = json!("Stopped");
        object["status"]["estimatedHourlyUSD"] = json!("0.542");
        object["status"]["estimatedStoppedHourlyUSD"] = json!("0.011");
        object["status"]["priceAsOf"] = json!("2026-07-20");
        object["status"]["lifecycle"] = json!({
            "expiresAt": "2026-01-01T09:00:00Z", "deletesAt": "2026-01-15T09:00:00Z",
            "stoppedAt": "2026-01-01T09:00:00Z", "stopReason": "Expired"});
        let now = "2026-01-01T12:30:00Z".parse().unwrap();
        let told = |object: &Value| {
            let lines = lifecycle(&environment(object), now);
            lines
                .iter()
                .map(|(field, text)| format!("{field}: {text}"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        insta::assert_snapshot!(told(&object), @r"
        power: Stopped
        price: 0.542 USD per hour, 0.011 while stopped (estimate, prices of 2026-07-20)
        stopped: 2026-01-01T09:00:00Z, 3h30m ago, because it expired
        expires: 2026-01-01T09:00:00Z, 3h30m ago
        deletion: 2026-01-15T09:00:00Z, in 13d
        ");
        object["status"]["power"] = json!("Running");
        object["status"]["estimatedHourlyUSD"] = json!(null);
        object["status"]["lifecycle"] = json!({"expiresAt": "2026-01-01T18:00:00Z"});
        insta::assert_snapshot!(told(&object), @r"
        power: Running
        expires: 2026-01-01T18:00:00Z, in 5h30m
        ");
        assert_eq!(told(&ready()), "", "a schema revision before 3 has no lifecycle");
    }
}
