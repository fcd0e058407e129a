//! A line per resource, for people. Secrets never stand in it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Color, Style};
use function_paved_road::function::CONDITION;
use function_sdk_rust::proto::v1::{RunFunctionResponse, Severity};
use serde_json::Value;
use simulator::core::{Rendered, SLOT};

use super::subject::Subject;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Green)));
const YELLOW: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Yellow)));
const RED: Style = Style::new().fg_color(Some(Color::Ansi(AnsiColor::Red)));

/// Status fields that have their own place in the tree.
const SHOWN_ELSEWHERE: [&str; 6] =
    ["phase", "progress", "resources", "conditions", "claimConditionTypes", "connectionDetails"];

/// Characters of a message that a leaf's line shows.
const LONGEST: usize = 140;

/// Prints the composite, a line per resource, its status and the function's results.
pub(crate) fn print(
    subject: &Subject,
    rendered: &Rendered,
    response: &RunFunctionResponse,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(subject, &rendered.composite, out)?;
    let leaves = leaves(rendered, response);
    let width =
        |part: fn(&Leaf) -> &str| leaves.iter().map(|leaf| part(leaf).chars().count()).max().unwrap_or(0);
    let widths = [width(|leaf| &leaf.slot), width(|leaf| &leaf.kind), width(|leaf| &leaf.name)];
    for (index, leaf) in leaves.iter().enumerate() {
        let branch = if index + 1 == leaves.len() { "└─" } else { "├─" };
        leaf.print(branch, widths, out)?;
    }
    status(&rendered.composite, out)?;
    results(response, out)
}

/// Kind, name, claim, phase and progress; below it the one sentence that the claim's owner reads.
fn head(subject: &Subject, composite: &Value, out: &mut dyn Write) -> io::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&composite["kind"]), text(&composite["metadata"]["name"]));
    write!(out, "{BOLD}{kind} {name}{BOLD:#}")?;
    if let Some(claim) = &subject.claim {
        write!(out, " {DIM}(claim {claim}){DIM:#}")?;
    }
    let phase = text(&composite["status"]["phase"]);
    if !phase.is_empty() {
        let style = style_of(&phase);
        write!(out, "  {style}{phase}{style:#} {}", text(&composite["status"]["progress"]))?;
    }
    writeln!(out)?;
    let conditions = composite["status"]["conditions"].as_array();
    let ours = conditions.into_iter().flatten().find(|condition| condition["type"] == CONDITION);
    match ours.map(|condition| text(&condition["message"])) {
        Some(message) if !message.is_empty() => writeln!(out, "│ {message}"),
        _ => Ok(()),
    }
}

fn style_of(phase: &str) -> Style {
    match phase {
        "Ready" => GREEN,
        "Failed" => RED,
        _ => YELLOW,
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
    fn print(&self, branch: &str, widths: [usize; 3], out: &mut dyn Write) -> io::Result<()> {
        let (style, mark) = match (self.failed, self.ready) {
            (true, _) => (RED, '✗'),
            (false, true) => (GREEN, '✓'),
            (false, false) => (YELLOW, '…'),
        };
        let [slot, kind, name] = [&self.slot, &self.kind, &self.name];
        let [slot_width, kind_width, name_width] = widths;
        let line = format!("{slot:slot_width$}  {kind:kind_width$}  {name:name_width$}");
        let message = cut(&self.message.replace('\n', " "));
        let said = if message.is_empty() { String::new() } else { format!("  {DIM}{message}{DIM:#}") };
        let line = if message.is_empty() { line.trim_end() } else { &line };
        writeln!(out, "{branch} {style}{mark}{style:#} {line}{said}")
    }
}

/// A provider's message in one line of a tree; status has all of it.
fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// A leaf per slot: what is applied, and what the function's status says of it or of what is still to come.
fn leaves(rendered: &Rendered, response: &RunFunctionResponse) -> Vec<Leaf> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut leaves = BTreeMap::new();
    for resource in &rendered.resources {
        let slot = text(&resource["metadata"]["annotations"][SLOT]);
        let ready = desired_ready(response, &slot);
        let (kind, name) = (text(&resource["kind"]), text(&resource["metadata"]["name"]));
        leaves.insert(slot.clone(), Leaf { slot, kind, name, ready, failed: false, message: String::new() });
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
        // Of a wrapper people want to know what it wraps.
        (leaf.kind, leaf.message, leaf.failed) = (kind, text(&line["message"]), failed);
    }
    leaves.into_values().collect()
}

fn desired_ready(response: &RunFunctionResponse, slot: &str) -> bool {
    let desired = response.desired.as_ref().and_then(|desired| desired.resources.get(slot));
    desired.is_some_and(|resource| resource.ready() == function_sdk_rust::proto::v1::Ready::True)
}

/// The API's own status fields.
fn status(composite: &Value, out: &mut dyn Write) -> io::Result<()> {
    let fields: Vec<(&String, &Value)> = composite["status"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, _)| !SHOWN_ELSEWHERE.contains(&field.as_str()))
        .collect();
    let width = fields.iter().map(|(field, _)| field.chars().count() + 1).max().unwrap_or(0);
    for (field, value) in fields {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(out, "  {BOLD}{:width$}{BOLD:#} {shown}", format!("{field}:"))?;
    }
    Ok(())
}

/// What the function wants known; our condition's sentence stands at the top already.
pub(crate) fn results(response: &RunFunctionResponse, out: &mut dyn Write) -> io::Result<()> {
    let ours = response.conditions.iter().find(|condition| condition.r#type == CONDITION);
    let sentence = ours.and_then(|condition| condition.message.as_deref());
    for result in response.results.iter().filter(|result| sentence != Some(&result.message)) {
        match result.severity() {
            Severity::Warning => writeln!(out, "  {YELLOW}warning:{YELLOW:#} {}", result.message)?,
            Severity::Fatal => {}
            _ => writeln!(out, "  {DIM}note:{DIM:#} {}", result.message)?,
        }
    }
    Ok(())
}
