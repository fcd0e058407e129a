//! A picture on a terminal that is drawn over and over in the same place.

use std::io;

use crate::Console;

/// What stands on the terminal now.
#[derive(Default)]
pub(crate) struct Live {
    lines: usize,
}

impl Live {
    /// Draws a frame in place of the last one. Lines are cut to the terminal's width, and a frame that is too high to its
    /// height: what has scrolled away cannot be drawn over. Without a terminal frames follow each other.
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
            // Up to the first line of the last frame, and everything from there on away.
            write!(terminal.controls, "\u{1b}[{}A\u{1b}[J", self.lines)?;
            terminal.controls.flush()?;
        }
        for line in &lines {
            writeln!(console.out, "{line}")?;
        }
        self.lines = lines.len();
        console.out.flush()
    }

    /// Leaves the frame where it is: what is printed from here on stands below.
    pub(crate) fn leave(&mut self) {
        self.lines = 0;
    }
}

/// The lines that a terminal of this size shows without wrapping or scrolling.
fn fit(text: &str, rows: usize, columns: usize) -> Vec<String> {
    // The last row is the cursor's, the last column may wrap.
    let (rows, columns) = (rows.max(4) - 1, columns.max(20) - 1);
    let all: Vec<&str> = text.lines().collect();
    let shown = if all.len() > rows { rows - 1 } else { all.len() };
    let mut lines: Vec<String> = all[..shown]
        .iter()
        .map(|line| format!("{}{}", console::truncate_str(line, columns, "…"), anstyle::Reset))
        .collect();
    if shown < all.len() {
        lines.push(format!("  … {} more lines", all.len() - shown));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::fit;

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
    fn what_fits_is_whole() {
        assert_eq!(plain(&fit("a\nb\n", 24, 80)), ["a", "b"]);
        assert_eq!(plain(&fit("a\nb\n", 0, 0)), ["a", "b"], "a size that is not known");
    }
}
