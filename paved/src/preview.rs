//! `paved preview`: from files to what they become.

mod documents;
mod rounds;
mod tree;

use function_sdk_rust::proto::v1::RunFunctionResponse;
use jiff::Timestamp;
use serde_json::Value;
use simulator::core::rendered;

use crate::Console;
use crate::cli::{Format, Preview};
use crate::failure::Failure;
use crate::files::{self, Document, shown};
use crate::function;
use crate::subject::{Subject, kind, observed, placeholder, step};

/// Previews every claim and XR of the given files: all that can be is printed, then all that went wrong.
pub(crate) fn run(args: &Preview, console: &mut Console<'_>) -> Result<(), Failure> {
    let observed = observed::read(&args.observed, console)?;
    let format = args.output.unwrap_or(if console.terminal.is_some() { Format::Tree } else { Format::Yaml });
    let mut printed = Vec::new();
    let mut failures = Vec::new();
    for (document, settings) in inputs(args, console)? {
        let shown = Subject::prepare(&document, &args.sources, &settings, &observed, console)
            .and_then(|subject| show(subject, args, format, console));
        match shown {
            Ok(documents) => printed.extend(documents),
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => failures.push(failure),
        }
    }
    documents::print(&printed, format, console)?;
    Failure::of_all(failures)
}

/// The documents to preview, each with the Settings that stand in its file. A folder also holds other things: those are left
/// alone.
fn inputs(args: &Preview, console: &mut Console<'_>) -> Result<Vec<(Document, Vec<Value>)>, Failure> {
    let mut inputs = Vec::new();
    for path in &args.files {
        let documents = files::read(path, console)?;
        let is_ours = |document: &&Document| {
            !step::is_settings(&document.value) && (!document.found || kind::find(&document.value).is_ok())
        };
        let ours: Vec<&Document> = documents.iter().filter(is_ours).collect();
        if ours.is_empty() {
            return Err(Failure::Usage(format!("{} holds no claim and no XR", shown(path))));
        }
        let beside = |document: &Document| {
            let same = documents.iter().filter(|other| other.file == document.file);
            same.map(|other| &other.value).filter(|value| step::is_settings(value)).cloned().collect()
        };
        inputs.extend(ours.into_iter().map(|document| (document.clone(), beside(document))));
    }
    Ok(inputs)
}

/// Warns of what no cloud will take, although the function does.
fn warn(subject: &Subject, response: &RunFunctionResponse, console: &mut Console<'_>) -> Result<(), Failure> {
    for advice in placeholder::of_response(response) {
        writeln!(console.err, "warning: {}: {advice}", subject.title)?;
    }
    Ok(())
}

/// Runs the function once, or until it is ready, and gives the documents to print; a tree is printed at once.
fn show(
    mut subject: Subject,
    args: &Preview,
    format: Format,
    console: &mut Console<'_>,
) -> Result<Vec<Value>, Failure> {
    if args.until_ready {
        return rounds::run(&mut subject, args, format, console);
    }
    let response = function::answer(&subject.world, &subject.step.input, Timestamp::now())
        .map_err(|message| subject.fatal(message))?;
    subject.check(&response, console)?;
    warn(&subject, &response, console)?;
    let rendered = rendered(&subject.world, &response).map_err(|error| subject.fatal(error.to_string()))?;
    if let Some(advice) = function::advice(&subject.world, &response) {
        writeln!(console.err, "note: {}: {advice}", subject.title)?;
    }
    if format == Format::Tree {
        tree::print(&subject, &rendered, &response, &mut console.out)?;
        return Ok(Vec::new());
    }
    tree::results(&response, &mut console.err)?;
    Ok(documents::of(&rendered, args))
}
