//! Terminal output: colours, trees and tables. The output is also readable without colours.

mod table;

use std::io::{self, Write};

use crate::Console;
use crate::wrap::COMMAND_SPACE;
use anstyle::{AnsiColor, Color, Style};
pub(crate) use crossplane::text::{harmless, harmless_name};
pub(crate) use paved_client::environment::Mark;

pub(crate) use table::{Column, Row, Table};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = coloured(AnsiColor::Green);
pub(crate) const YELLOW: Style = coloured(AnsiColor::Yellow);
pub(crate) const RED: Style = coloured(AnsiColor::Red);

const fn coloured(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// The colour of a mark.
pub(crate) fn style_of(mark: Mark) -> Style {
    match mark {
        Mark::Good => GREEN,
        Mark::Busy => YELLOW,
        Mark::Bad => RED,
    }
}

/// The character of a mark.
pub(crate) fn sign_of(mark: Mark) -> char {
    match mark {
        Mark::Good => '✓',
        Mark::Busy => '…',
        Mark::Bad => '✗',
    }
}

/// A command in a text. It is never wrapped. See [`Stream`](crate::Stream).
pub(crate) fn command(text: &str) -> String {
    text.replace(' ', &COMMAND_SPACE.to_string())
}

/// Prints the next command on standard error, for a user at a terminal.
pub(crate) fn next(text: &str, console: &mut Console<'_>) -> io::Result<()> {
    if console.terminal.is_none() {
        return Ok(());
    }
    let text = command(&harmless_name(text));
    writeln!(console.err, "{DIM}Next:{DIM:#} {text}")
}

/// A line of a tree.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) mark: Mark,
    /// Columns, aligned with the cells of the other lines.
    pub(crate) cells: Vec<String>,
    /// A text after the cells.
    pub(crate) note: String,
}

impl Leaf {
    fn harmless(&self) -> Self {
        let cells = self.cells.iter().map(|cell| harmless_name(cell)).collect();
        Self { mark: self.mark, cells, note: harmless_name(&self.note) }
    }
}

/// Prints the lines of a tree with aligned cells. Each takes one line, even if its texts have line
/// breaks.
pub(crate) fn tree(leaves: &[Leaf], out: &mut dyn Write) -> io::Result<()> {
    let leaves: Vec<Leaf> = leaves.iter().map(Leaf::harmless).collect();
    let widths = widths(leaves.iter().map(|leaf| leaf.cells.as_slice()));
    for (index, leaf) in leaves.iter().enumerate() {
        let branch = if index + 1 == leaves.len() { "└─" } else { "├─" };
        let (style, sign) = (style_of(leaf.mark), sign_of(leaf.mark));
        let line = aligned(&leaf.cells, &widths);
        let note = &leaf.note;
        if note.is_empty() {
            writeln!(out, "{branch} {style}{sign}{style:#} {}", line.trim_end())?;
        } else {
            writeln!(out, "{branch} {style}{sign}{style:#} {line}  {DIM}{note}{DIM:#}")?;
        }
    }
    Ok(())
}

/// Cells side by side, with two spaces between them.
fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, wide)| {
        let gap = wide.saturating_sub(width(cell));
        format!("{cell}{:gap$}", "")
    });
    padded.collect::<Vec<_>>().join("  ")
}

fn widths<'a>(rows: impl Iterator<Item = &'a [String]>) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(row.len().max(widths.len()), 0);
        row.iter().zip(&mut widths).for_each(|(cell, wide)| *wide = width(cell).max(*wide));
    }
    widths
}

/// The number of terminal columns of a text.
fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// The maximum length of a message in one line, in characters. Other outputs have the whole
/// message.
const MAX_MESSAGE_CHARS: usize = 140;

/// A provider's message in one line.
pub(crate) fn one_line(message: &str) -> String {
    let message = harmless_name(message);
    let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) else { return message };
    let words = message[..end].rfind(' ').filter(|words| words * 2 > end);
    match words {
        Some(end) => format!("{} …", &message[..end]),
        None => format!("{}…", &message[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_of_a_tree_is_one_line() {
        let cells = vec!["a\n::error::x".to_owned(), "b\u{9b}2J".to_owned()];
        let leaf = Leaf { mark: Mark::Good, cells, note: "c\nd".to_owned() };
        let mut told = Vec::new();
        assert!(tree(&[leaf], &mut told).is_ok());
        let told = anstream::adapter::strip_str(&String::from_utf8_lossy(&told)).to_string();
        assert_eq!(told, "└─ ✓ a ::error::x  b2J  c d\n");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(one_line(&"é".repeat(141)).chars().count(), 141);
        assert_eq!(one_line("a\nb"), "a b");
        let sentence = one_line(&"word ".repeat(40));
        assert!(sentence.ends_with("word …"), "words are whole: {sentence}");
    }
}
