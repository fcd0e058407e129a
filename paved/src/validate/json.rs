//! Errors as JSON, for other programs.

use serde_json::{Value, json};

use super::text::{file, notes};
use super::{Problem, Report, redact};
use crate::Console;
use crate::documents::{self, Format};
use crate::failure::Failure;

/// Prints one object: `errors` with file, line, column and the line's text, `valid`, `skipped` and
/// `notes`.
pub(super) fn print(found: &Report, console: &mut Console<'_>) -> Result<(), Failure> {
    let named = |source: usize, document: &str| json!({"file": file(&found.sources[source]), "document": document});
    let errors: Vec<Value> =
        found.in_order().into_iter().map(|problem| error(found, problem)).collect();
    let valid: Vec<Value> =
        found.valid.iter().map(|valid| named(valid.source, &valid.document)).collect();
    let skipped: Vec<Value> =
        found.skipped.iter().map(|skipped| named(skipped.source, &skipped.document)).collect();
    let unread: Vec<String> = found.unread.iter().map(ToString::to_string).collect();
    let all = json!({"errors": errors, "valid": valid, "skipped": skipped, "unread": unread, "notes": notes(found)});
    documents::print(&all, Format::Json, console)
}

fn error(found: &Report, problem: &Problem) -> Value {
    let source = &found.sources[problem.source];
    let bytes = &problem.spot.bytes;
    let snippet = (!redact::hides(source, problem)).then(|| redact::line(source, bytes.start).2);
    json!({
        "file": file(source),
        "line": source.line(bytes.start).0,
        "column": source.column(bytes.start),
        "endColumn": source.column(bytes.end.max(bytes.start)),
        "document": problem.document,
        "path": problem.path,
        "message": problem.message,
        "refusedBy": problem.grade.name(),
        "snippet": snippet,
    })
}
