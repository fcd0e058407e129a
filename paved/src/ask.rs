//! Questions on a terminal.

use crate::Console;
use crate::failure::Failure;

/// Asks a question. Only `y` and `yes` mean yes. `unanswered` is the error if no user can answer.
pub(crate) fn agrees(
    question: &str,
    unanswered: &str,
    console: &mut Console<'_>,
) -> Result<bool, Failure> {
    let unanswered = || Failure::Usage(unanswered.to_owned());
    let Some(answer) = &mut console.answer else { return Err(unanswered()) };
    write!(console.err, "{question} [y/N] ")?;
    console.err.flush()?;
    let line = answer()?;
    if !line.ends_with('\n') {
        // The input ended within the line of the question.
        writeln!(console.err)?;
    }
    if line.is_empty() {
        return Err(unanswered());
    }
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}
