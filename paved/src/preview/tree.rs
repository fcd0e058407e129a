//! A tree with one line for each resource. It never contains a secret.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crossplane::names::SLOT;
use function_paved_road::function::CONDITION;
use function_paved_road::status::is_common;
use function_proto::v1::{RunFunctionResponse, Severity};
use paved_client::environment::{Diagnosis, Environment, Price};
use paved_render::subject::Subject;
use serde_json::Value;
use simulator::core::Rendered;

use crate::style::{self, BOLD, DIM, Mark, YELLOW, harmless_name, one_line, style_of};

/// Prints the composite, a line for each resource, the status and the function's results.
pub(crate) fn print(
    subject: &Subject,
    rendered: &Rendered,
    response: &RunFunctionResponse,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(subject, &rendered.composite, out)?;
    let leaves: Vec<style::Leaf> =
        leaves(rendered, response).into_iter().map(Leaf::drawn).collect();
    style::tree(&leaves, out)?;
    status(&rendered.composite, out)?;
    results(response, out)
}

/// Prints kind, name, claim, phase and progress. The line below is our condition's message for the
/// claim's owner.
fn head(subject: &Subject, composite: &Value, out: &mut dyn Write) -> io::Result<()> {
    let text = |value: &Value| harmless_name(value.as_str().unwrap_or_default());
    let (kind, name) = (text(&composite["kind"]), text(&composite["metadata"]["name"]));
    write!(out, "{BOLD}{kind} {name}{BOLD:#}")?;
    if let Some(claim) = &subject.claim {
        write!(out, " {DIM}(claim {}){DIM:#}", harmless_name(claim))?;
    }
    let phase = text(&composite["status"]["phase"]);
    if !phase.is_empty() {
        let style = style_of(mark_of(&phase));
        write!(out, "  {style}{phase}{style:#} {}", text(&composite["status"]["progress"]))?;
    }
    writeln!(out)?;
    let conditions = composite["status"]["conditions"].as_array();
    let ours = conditions.into_iter().flatten().find(|condition| condition["type"] == CONDITION);
    if let Some(diagnosis) = failure(composite) {
        let slot = diagnosis.slot.map(|slot| format!("{slot}: ")).unwrap_or_default();
        writeln!(out, "│ {BOLD}{slot}{}{BOLD:#}", diagnosis.cause.headline())?;
        writeln!(out, "│ {}", diagnosis.cause.remediation())?;
    }
    match ours.map(|condition| text(&condition["message"])) {
        Some(message) if !message.is_empty() => writeln!(out, "│ {message}"),
        _ => Ok(()),
    }
}

/// Why an environment has failed; `None` for one that has not failed.
pub(super) fn failure(composite: &Value) -> Option<Diagnosis> {
    let object = serde_json::from_value(composite.clone()).ok()?;
    let settled = Environment::from_object(&object);
    settled.diagnosis().filter(|_| settled.mark() == paved_client::environment::Mark::Bad)
}

fn mark_of(phase: &str) -> Mark {
    match phase {
        "Ready" => Mark::Good,
        "Failed" => Mark::Bad,
        _ => Mark::Busy,
    }
}

struct Leaf {
    slot: String,
    kind: String,
    name: String,
    ready: bool,
    failed: bool,
    message: String,
}

impl Leaf {
    fn drawn(self) -> style::Leaf {
        let mark = match (self.failed, self.ready) {
            (true, _) => Mark::Bad,
            (false, true) => Mark::Good,
            (false, false) => Mark::Busy,
        };
        style::Leaf {
            mark,
            cells: vec![self.slot, self.kind, self.name],
            note: one_line(&self.message),
        }
    }
}

/// One line for each slot, from the applied resources and from the function's status. The status
/// also has resources that are not applied yet.
fn leaves(rendered: &Rendered, response: &RunFunctionResponse) -> Vec<Leaf> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut leaves = BTreeMap::new();
    for resource in &rendered.resources {
        let slot = text(&resource["metadata"]["annotations"][SLOT]);
        let ready = desired_ready(response, &slot);
        let (kind, name) = (text(&resource["kind"]), text(&resource["metadata"]["name"]));
        leaves.insert(
            slot.clone(),
            Leaf { slot, kind, name, ready, failed: false, message: String::new() },
        );
    }
    for line in rendered.composite["status"]["resources"].as_array().into_iter().flatten() {
        let slot = text(&line["slot"]);
        let failed = line["reason"] == "Failed";
        let (kind, name) = (text(&line["kind"]), text(&line["name"]));
        let ready = line["ready"].as_bool().unwrap_or(false);
        let leaf = leaves.entry(slot.clone()).or_insert(Leaf {
            slot,
            kind: kind.clone(),
            name,
            ready,
            failed,
            message: String::new(),
        });
        // The status shows the kind inside a wrapper, which is more useful to users.
        (leaf.kind, leaf.message, leaf.failed) = (kind, text(&line["message"]), failed);
    }
    leaves.into_values().collect()
}

fn desired_ready(response: &RunFunctionResponse, slot: &str) -> bool {
    let desired = response.desired.as_ref().and_then(|desired| desired.resources.get(slot));
    desired.is_some_and(|resource| resource.ready() == function_proto::v1::Ready::True)
}

/// Prints the price, the end and the API's status fields of an environment.
fn status(composite: &Value, out: &mut dyn Write) -> io::Result<()> {
    let status = &composite["status"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let price = Price::from_status(status).map(|price| ("price", price.to_string()));
    let ends = [("expires", "expiresAt"), ("deletion", "deletesAt")]
        .into_iter()
        .filter_map(|(name, field)| Some((name, text(status["lifecycle"].get(field)?))));
    let fields = status.as_object().into_iter().flatten();
    let own = fields
        .filter(|(field, _)| !is_common(field))
        .map(|(field, value)| (field.as_str(), text(value)));
    let lines: Vec<(&str, String)> = price.into_iter().chain(ends).chain(own).collect();
    let width = lines.iter().map(|(field, _)| field.chars().count() + 1).max().unwrap_or(0);
    for (field, shown) in lines {
        let (field, shown) = (harmless_name(field), harmless_name(&shown));
        writeln!(out, "  {BOLD}{:width$}{BOLD:#} {shown}", format!("{field}:"))?;
    }
    Ok(())
}

/// Prints the function's results. The message of our condition is already at the top.
pub(crate) fn results(response: &RunFunctionResponse, out: &mut dyn Write) -> io::Result<()> {
    let ours = response.conditions.iter().find(|condition| condition.r#type == CONDITION);
    let sentence = ours.and_then(|condition| condition.message.as_deref());
    for result in response.results.iter().filter(|result| sentence != Some(&result.message)) {
        match result.severity() {
            Severity::Warning => {
                writeln!(out, "  {YELLOW}warning:{YELLOW:#} {}", harmless_name(&result.message))?;
            }
            Severity::Fatal => {}
            _ => writeln!(out, "  {DIM}note:{DIM:#} {}", harmless_name(&result.message))?,
        }
    }
    Ok(())
}
