//! A text on a terminal that is redrawn in the same place.

use std::borrow::Cow;
use std::io;

use crate::Console;
use crate::style::{Mark, sign_of};

/// The last frame on the terminal.
#[derive(Default)]
pub(crate) struct LiveView {
    lines: usize,
}

impl LiveView {
    /// Draws a frame in place of the last frame. Lines are cut to the terminal's width and frames
    /// to its height, because scrolled lines cannot be overwritten. Lines of ready resources are
    /// dropped first. Without a terminal, frames follow each other.
    pub(crate) fn draw(&mut self, frame: &[u8], console: &mut Console<'_>) -> io::Result<()> {
        let text = String::from_utf8_lossy(frame);
        let Some(terminal) = &mut console.terminal else {
            write!(console.out, "{text}")?;
            return console.out.flush();
        };
        let (rows, columns) = (terminal.size)();
        let lines = fit(&text, rows, columns);
        console.out.flush()?;
        if self.lines > 0 {
            // Moves up to the first line of the last frame, and clears the screen from there.
            write!(terminal.controls, "\u{1b}[{}A\u{1b}[J", self.lines)?;
            terminal.controls.flush()?;
        }
        for line in &lines {
            writeln!(console.out, "{line}")?;
        }
        self.lines = lines.len();
        console.out.flush()
    }

    /// Keeps the current frame. Later output appears below it.
    pub(crate) fn leave(&mut self) {
        self.lines = 0;
    }
}

/// The lines that a terminal of this size shows without wrapping or scrolling.
fn fit(text: &str, rows: usize, columns: usize) -> Vec<String> {
    // The cursor needs the last row, and the last column may wrap.
    let (rows, columns) = (rows.max(4) - 1, columns.max(20) - 1);
    let all: Vec<&str> = text.lines().collect();
    let shown = if all.len() > rows { give_way(&all, rows - 1) } else { all.clone() };
    let mut lines: Vec<String> =
        shown.iter().map(|line| format!("{}{}", cut(line, columns), anstyle::Reset)).collect();
    if shown.len() < all.len() {
        lines.push(format!("  … {} more lines", all.len() - shown.len()));
    }
    lines
}

/// At most `rows` lines. Lines of ready resources are dropped first, from the last one.
fn give_way<'l>(all: &[&'l str], rows: usize) -> Vec<&'l str> {
    let is_good = |line: &&&str| {
        let plain = console::strip_ansi_codes(line);
        plain.trim_start_matches(['├', '└', '─', ' ']).starts_with(sign_of(Mark::Good))
    };
    let excess = all.len() - rows;
    let good = all.iter().filter(is_good).count();
    let kept = good.saturating_sub(excess);
    let mut seen = 0;
    let mut shown: Vec<&str> = all
        .iter()
        .filter(|line| {
            seen += usize::from(is_good(line));
            !is_good(line) || seen <= kept
        })
        .copied()
        .collect();
    shown.truncate(rows);
    shown
}

/// A line of at most `columns` columns. A last cell that would be cut too short is dropped.
fn cut(line: &str, columns: usize) -> Cow<'_, str> {
    const LEAST: usize = 8;
    let plain = console::strip_ansi_codes(line);
    let visible = console::truncate_str(&plain, columns, "");
    let rest = &plain[visible.len()..];
    let ends_with_a_cell =
        rest.starts_with("  ") || (rest.starts_with(' ') && visible.ends_with(' '));
    let end = if ends_with_a_cell { Some(visible.trim_end().len()) } else { visible.rfind("  ") };
    match end.map(|end| console::measure_text_width(&visible[..end])) {
        Some(end) if !rest.is_empty() && columns - end < LEAST + 2 => {
            console::truncate_str(line, end, "")
        }
        _ => console::truncate_str(line, columns, "…"),
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, fit};

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_frame_never_wraps_nor_scrolls() {
        let line = |n: usize| format!("\u{1b}[1mline {n}\u{1b}[0m {}", "m".repeat(300));
        let text = (0..60).map(line).collect::<Vec<_>>().join("\n");
        let lines = plain(&fit(&text, 24, 80));
        assert_eq!(lines.len(), 23);
        assert!(lines.iter().all(|line| line.chars().count() <= 79), "{lines:?}");
        assert!(lines[0].starts_with("line 0 mmm") && lines[0].ends_with('…'));
        assert_eq!(lines[22], "  … 38 more lines");
    }

    #[test]
    fn cell_that_would_be_cut_too_short_is_dropped() {
        let line = "├─ \u{1b}[32m✓\u{1b}[0m egress  Ready  6s  \u{1b}[2msgr-0123456789\u{1b}[0m";
        let shown = |columns| plain(&[cut(line, columns).into_owned()]).remove(0);
        assert_eq!(shown(28), "├─ ✓ egress  Ready  6s");
        assert_eq!(
            [22, 23, 24].map(shown),
            ["├─ ✓ egress  Ready  6s"; 3],
            "a cell that ends at the edge is whole"
        );
        assert_eq!(shown(21), "├─ ✓ egress  Ready");
        assert_eq!(shown(34), "├─ ✓ egress  Ready  6s  sgr-01234…");
        assert_eq!(shown(80), "├─ ✓ egress  Ready  6s  sgr-0123456789");
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
