//! A text on a terminal that is redrawn in the same place.

use std::io;

use crate::Console;
use crate::style::{Mark, sign_of};
use crate::wrap::wrap;

/// The last frame on the terminal.
#[derive(Default)]
pub(crate) struct LiveView {
    rows: usize,
}

impl LiveView {
    /// Draws a frame in place of the last frame. Lines are wrapped at words, and a frame is never
    /// higher than the terminal, because scrolled lines cannot be overwritten. Lines of ready
    /// resources are dropped first. Without a terminal, frames follow each other.
    pub(crate) fn draw(&mut self, frame: &[u8], console: &mut Console<'_>) -> io::Result<()> {
        let text = String::from_utf8_lossy(frame);
        let Some(terminal) = &mut console.terminal else {
            write!(console.out, "{text}")?;
            return console.out.flush();
        };
        let (rows, columns) = (terminal.size)();
        let lines = fit(&text, rows, columns);
        console.out.flush()?;
        if self.rows > 0 {
            write!(terminal.controls, "{}", erased(self.rows))?;
            terminal.controls.flush()?;
        }
        let written: io::Result<()> =
            console.out.whole(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")));
        written?;
        self.rows = lines.iter().map(|line| height(line, columns)).sum();
        console.out.flush()
    }

    /// Keeps the current frame. Later output appears below it.
    pub(crate) fn leave(&mut self) {
        self.rows = 0;
    }
}

/// The controls that clear the last `rows` rows, and leave the cursor in the first of them. Each row
/// is cleared on its own: some terminals keep a screen in their history that is cleared as a whole.
fn erased(rows: usize) -> String {
    const CLEAR_AND_DOWN: &str = "\u{1b}[2K\u{1b}[1B";
    format!("\u{1b}[{rows}A\r{}\u{1b}[{rows}A", CLEAR_AND_DOWN.repeat(rows))
}

/// The lines that a terminal of this size shows without scrolling.
fn fit(text: &str, rows: usize, columns: usize) -> Vec<String> {
    // The cursor needs the last row, and the last column may wrap.
    let (rows, room) = (rows.max(4) - 1, columns.max(20) - 1);
    let all: Vec<Block> = text.lines().map(|line| Block::new(line, room, columns)).collect();
    let excess = all.iter().map(|block| block.rows).sum::<usize>().saturating_sub(rows);
    // The last row says how many lines are missing.
    let shown = if excess > 0 { give_way(&all, excess + 1) } else { all.iter().collect() };
    let missing = all.len() - shown.len();
    let mut lines: Vec<String> = shown.into_iter().flat_map(|block| block.lines.clone()).collect();
    if missing > 0 {
        lines.push(format!("  … {missing} more lines"));
    }
    lines
}

/// A line of a frame, wrapped.
struct Block {
    lines: Vec<String>,
    rows: usize,
    /// Whether the line is about a ready resource.
    is_good: bool,
}

impl Block {
    fn new(line: &str, room: usize, columns: usize) -> Self {
        let plain = console::strip_ansi_codes(line);
        let is_good =
            plain.trim_start_matches(['├', '└', '─', ' ']).starts_with(sign_of(Mark::Good));
        let lines: Vec<String> =
            wrap(line, room).iter().map(|line| format!("{line}{}", anstyle::Reset)).collect();
        let rows = lines.iter().map(|line| height(line, columns)).sum();
        Self { lines, rows, is_good }
    }
}

/// The number of rows of a line. A long word takes several.
fn height(line: &str, columns: usize) -> usize {
    console::measure_text_width(line).div_ceil(columns.max(20)).max(1)
}

/// The blocks without at least `excess` rows. Blocks of ready resources are dropped first, and then
/// the last blocks.
fn give_way(all: &[Block], mut excess: usize) -> Vec<&Block> {
    let mut dropped = vec![false; all.len()];
    for is_good in [true, false] {
        for (place, block) in all.iter().enumerate().rev() {
            // The first line says which environment it is.
            if excess > 0 && place > 0 && block.is_good == is_good && !dropped[place] {
                dropped[place] = true;
                excess = excess.saturating_sub(block.rows);
            }
        }
    }
    all.iter().zip(dropped).filter(|(_, dropped)| !dropped).map(|(block, _)| block).collect()
}

#[cfg(test)]
mod tests {
    use super::{erased, fit};

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_frame_never_scrolls() {
        let line = |n: usize| format!("\u{1b}[1mline {n}\u{1b}[0m {}", "mmm ".repeat(40));
        let text = (0..60).map(line).collect::<Vec<_>>().join("\n");
        let lines = plain(&fit(&text, 24, 80));
        assert!(lines.len() <= 23, "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 79), "{lines:?}");
        assert!(lines[0].starts_with("line 0 mmm") && lines[0].ends_with("mmm"), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("  … 53 more lines"));
    }

    #[test]
    fn value_to_copy_is_whole() {
        let url = format!("https://{}", "a".repeat(150));
        let lines = plain(&fit(&format!("shop\n  url: {url}"), 24, 80));
        assert!(lines.iter().any(|line| line.trim() == url), "{lines:?}");
        let crowd = "├─ ✓ part\n".repeat(30);
        let lines = plain(&fit(&format!("shop\n{crowd}  url: {url}"), 24, 80));
        assert!(lines.iter().any(|line| line.trim() == url), "{lines:?}");
        assert!(lines.len() < 23, "the address has two rows: {lines:?}");
    }

    #[test]
    fn rows_are_cleared_one_by_one() {
        assert_eq!(erased(2), "\u{1b}[2A\r\u{1b}[2K\u{1b}[1B\u{1b}[2K\u{1b}[1B\u{1b}[2A");
        assert!(!erased(23).contains("\u{1b}[J"), "tmux would keep the cleared screen");
    }

    #[test]
    fn waiting_part_is_shown_among_many_ready_parts() {
        let leaf = |n: usize| format!("├─ {} part-{n}", if n % 20 == 19 { "…" } else { "✓" });
        let text = format!(
            "shop  Provisioning\n{}\n  url: x",
            (0..60).map(leaf).collect::<Vec<_>>().join("\n")
        );
        let lines = plain(&fit(&text, 10, 80));
        let expected =
            ["shop  Provisioning", "├─ ✓ part-0", "├─ ✓ part-1", "├─ ✓ part-2", "├─ … part-19"];
        assert_eq!(lines[..5], expected);
        assert_eq!(lines[5..], ["├─ … part-39", "├─ … part-59", "  url: x", "  … 54 more lines"]);
    }

    #[test]
    fn short_text_is_shown_whole() {
        assert_eq!(plain(&fit("a\nb\n", 24, 80)), ["a", "b"]);
        assert_eq!(plain(&fit("a\nb\n", 0, 0)), ["a", "b"], "unknown size");
    }
}
