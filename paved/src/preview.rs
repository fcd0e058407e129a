//! `paved preview`: shows the resources of claims and XRs in files.

mod documents;
mod rounds;
mod tree;

use function_proto::v1::RunFunctionResponse;
use jiff::Timestamp;
use paved_render::function;
use paved_render::rendered;
use paved_render::subject::{Subject, kind, pipeline_step, placeholder};
use serde_json::Value;

use crate::Console;
use crate::cli::{Format, Preview};
use crate::failure::Failure;
use crate::files::{Document, Inputs, shown};
use crate::prepare::{self, Sources};

/// Previews every claim and XR of the given files. Prints all successful previews, and then all
/// failures.
pub(crate) fn run(args: &Preview, console: &mut Console<'_>) -> Result<(), Failure> {
    let sources = Sources::from_flags(&args.sources);
    let observed = prepare::observed(&args.observed, &sources.inputs, console)?;
    let format =
        args.output.unwrap_or(if console.terminal.is_some() { Format::Tree } else { Format::Yaml });
    let mut printed = Vec::new();
    let mut failures = Vec::new();
    for (document, settings) in inputs(args, &sources.inputs, &mut failures, console)? {
        let shown = prepare::prepare(&document, &sources, &settings, &observed, console).and_then(
            |subject| {
                prepare::tell_unobserved(&subject, &observed, console)?;
                show(subject, args, format, console)
            },
        );
        match shown {
            Ok(documents) => printed.extend(documents),
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => failures.push(failure),
        }
    }
    documents::print(&printed, format, console)?;
    prepare::tell_unused(&observed, console)?;
    Failure::combine(failures)
}

/// A document to preview, and the Settings in its file.
type Input = (Document, Vec<Value>);

/// The documents to preview. Other documents in a folder are skipped with a note. An unreadable
/// file in a folder is reported at the end, so that it does not hide the others.
fn inputs(
    args: &Preview,
    files: &Inputs,
    failures: &mut Vec<Failure>,
    console: &mut Console<'_>,
) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for path in &args.files {
        let before = inputs.len();
        let mut is_whole = true;
        for source in files.sources(path, console)?.iter() {
            let source = source.as_ref().map_err(|why| Failure::Usage(why.clone()));
            match source.and_then(|source| source.objects(console)) {
                Ok(documents) => inputs.extend(inputs_from_file(documents, console)?),
                Err(Failure::Output(error)) => return Err(Failure::Output(error)),
                Err(failure) if path.is_dir() => {
                    failures.push(failure);
                    is_whole = false;
                }
                Err(failure) => return Err(failure),
            }
        }
        if inputs.len() == before && is_whole {
            return Err(Failure::Usage(format!("{} has no claim and no XR", shown(path))));
        }
    }
    Ok(inputs)
}

/// Warns about values that every cloud rejects, although the function accepts them.
fn warn(
    subject: &Subject,
    response: &RunFunctionResponse,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    for advice in placeholder::find_in_response(response) {
        writeln!(console.err, "warning: {}: {advice}", subject.title)?;
    }
    Ok(())
}

/// Selects the documents of a file to preview.
fn inputs_from_file(
    documents: Vec<Document>,
    console: &mut Console<'_>,
) -> Result<Vec<Input>, Failure> {
    let (settings, others): (Vec<Document>, Vec<Document>) =
        documents.into_iter().partition(|document| pipeline_step::is_settings(&document.value));
    let settings: Vec<Value> = settings.into_iter().map(|document| document.value).collect();
    let (ours, foreign): (Vec<Document>, Vec<Document>) = others
        .into_iter()
        .partition(|document| !document.found || kind::find(&document.value).is_ok());
    let foreign: Vec<&Document> =
        foreign.iter().filter(|document| !pipeline_step::has_ours(&document.value)).collect();
    if let Some(first) = foreign.first() {
        let names: Vec<String> = foreign.iter().map(|document| document.name()).collect();
        writeln!(
            console.err,
            "note: {}: skipped, not a Paved Road kind: {}",
            shown(&first.file),
            names.join(", ")
        )?;
    }
    Ok(ours.into_iter().map(|document| (document, settings.clone())).collect())
}

/// Runs the function once, or until the environment is ready. Returns the documents to print. A
/// tree is printed immediately.
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
        .map_err(|message| prepare::rejected(subject.fatal(message), console))?;
    if !subject.step.settled && function::is_about_settings(&response) {
        let note = "no Settings found. Pass the platform team's Settings with --settings or \
                    --composition";
        writeln!(console.err, "note: {}: {note}", subject.title)?;
    }
    subject.check(&response).map_err(|rejected| prepare::rejected(rejected, console))?;
    warn(&subject, &response, console)?;
    let rendered = rendered(&subject.world, &response)
        .map_err(|error| prepare::rejected(subject.fatal(error.to_string()), console))?;
    for advice in function::advice(&subject.world, &subject.step.input, &response) {
        writeln!(console.err, "note: {}: {advice}", subject.title)?;
    }
    if format == Format::Tree {
        tree::print(&subject, &rendered, &response, &mut console.out)?;
        return Ok(Vec::new());
    }
    tree::results(&response, &mut console.err)?;
    Ok(documents::select(&rendered, args))
}
