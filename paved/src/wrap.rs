//! Breaks lines at words, for a terminal.
//!
//! A word is never broken. A word that is longer than the terminal has a line of its own, which the
//! terminal breaks, so that it is copied whole. The spaces of a command are U+00A0. Such a command
//! stays on one line, or is broken with a backslash, as a shell allows.

use console::measure_text_width;

/// The space between the words of a command.
pub(crate) const COMMAND_SPACE: char = '\u{a0}';

/// The widest label before a value that a further line is aligned with, in columns.
const WIDEST_LABEL: usize = 24;

/// The characters before the text of a tree's line.
const BRANCHES: [char; 5] = ['│', '├', '└', '─', ' '];

/// The signs of a tree's line.
const SIGNS: [char; 3] = ['✓', '…', '✗'];

/// A line without its line feed, as lines of at most `room` columns.
pub(crate) fn wrap(line: &str, room: usize) -> Vec<String> {
    if measure_text_width(line) <= room {
        return vec![with_spaces(line)];
    }
    let plain = console::strip_ansi_codes(line);
    let indent = hanging(&plain, room);
    let mut lines = Lines { room, indent: &indent, done: Vec::new(), line: String::new(), used: 0 };
    // The start of a line is not broken.
    let begin = plain.len() - plain.trim_start_matches(BRANCHES).len();
    let (gap, mut rest) = split_at_visible(line, plain[..begin].chars().count());
    lines.push(gap);
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let (space, after) = rest.split_at(blanks);
        let (word, after) = after.split_at(after.find(' ').unwrap_or(after.len()));
        lines.add(space, word);
        rest = after;
    }
    lines.finish()
}

/// The lines so far, and the current line.
struct Lines<'i> {
    room: usize,
    indent: &'i str,
    done: Vec<String>,
    line: String,
    used: usize,
}

impl Lines<'_> {
    fn push(&mut self, text: &str) {
        self.line.push_str(text);
        self.used += measure_text_width(text);
    }

    fn add(&mut self, space: &str, word: &str) {
        let width = measure_text_width(word);
        if self.used + space.len() + width <= self.room {
            self.push(space);
            return self.push(word);
        }
        if width + measure_text_width(self.indent) > self.room && word.contains(COMMAND_SPACE) {
            return self.add_command(space, word);
        }
        if !self.is_empty() {
            self.break_line("");
        }
        self.push(word);
    }

    /// A command that is longer than the terminal.
    fn add_command(&mut self, space: &str, command: &str) {
        const MORE: &str = " \\";
        let mut gap = space;
        for (place, word) in command.split(COMMAND_SPACE).enumerate() {
            let width = measure_text_width(word) + MORE.len();
            if place == 0 && self.used + space.len() + width > self.room && !self.is_empty() {
                self.break_line("");
            } else if place > 0 && self.used + 1 + width > self.room {
                self.break_line(MORE);
                self.push("  ");
            } else {
                self.push(gap);
            }
            self.push(word);
            gap = " ";
        }
    }

    /// Whether the current line has only its indentation.
    fn is_empty(&self) -> bool {
        let plain = console::strip_ansi_codes(&self.line);
        plain.chars().all(|c| BRANCHES.contains(&c))
    }

    fn break_line(&mut self, end: &str) {
        let line = std::mem::take(&mut self.line);
        self.done.push(with_spaces(&format!("{}{end}", line.trim_end_matches(' '))));
        self.used = 0;
        let indent = self.indent;
        self.push(indent);
    }

    fn finish(mut self) -> Vec<String> {
        self.done.push(with_spaces(&self.line));
        self.done
    }
}

/// The text with plain spaces in commands.
fn with_spaces(text: &str) -> String {
    text.replace(COMMAND_SPACE, " ")
}

/// Splits a line after this number of visible characters.
fn split_at_visible(line: &str, count: usize) -> (&str, &str) {
    let mut seen = 0;
    let mut in_style = false;
    for (place, c) in line.char_indices() {
        if seen == count && c != '\u{1b}' && !in_style {
            return line.split_at(place);
        }
        match c {
            '\u{1b}' => in_style = true,
            'm' if in_style => in_style = false,
            _ if in_style => {}
            _ => seen += 1,
        }
    }
    (line, "")
}

/// The indentation of further lines: below the text of a tree's line, below the value after a label,
/// or two columns.
fn hanging(plain: &str, room: usize) -> String {
    let text = plain.trim_start_matches(BRANCHES);
    let begin = &plain[..plain.len() - text.len()];
    let continued = |c: char| if ['│', '├'].contains(&c) { '│' } else { ' ' };
    let mut indent: String = begin.chars().map(continued).collect();
    let is_tree = begin.contains(['│', '├', '└']);
    if text.starts_with(SIGNS) {
        indent.push_str("  ");
    } else if !is_tree {
        let label = label(text).filter(|label| !begin.is_empty() && *label <= WIDEST_LABEL);
        indent.extend(std::iter::repeat_n(' ', label.unwrap_or(2)));
    }
    if measure_text_width(&indent) * 3 > room * 2 { "  ".to_owned() } else { indent }
}

/// The width of a label with its colon and the spaces after it.
fn label(text: &str) -> Option<usize> {
    let (label, value) = text.split_once(": ")?;
    let spaces = value.len() - value.trim_start_matches(' ').len();
    (!label.contains(' ')).then(|| measure_text_width(label) + 2 + spaces)
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn words_are_kept_whole() {
        let long = "a".repeat(30);
        for room in 8..60 {
            let text = format!("error: some words and {long} and a last word");
            let lines = wrap(&text, room);
            let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
            assert_eq!(words, text.split_whitespace().collect::<Vec<_>>(), "{room}");
            assert!(
                lines.iter().all(|line| line.len() <= room || line.trim() == long),
                "{room}: {lines:?}"
            );
        }
    }

    #[test]
    fn further_lines_stand_below_the_text() {
        for (line, room, expected) in [
            ("error: one two three", 14, "error: one two\n  three"),
            ("│ one two three", 9, "│ one two\n│ three"),
            ("├─ ✗ one two three", 12, "├─ ✗ one two\n│    three"),
            ("└─ ✗ one two three", 12, "└─ ✗ one two\n     three"),
            ("  machine:  1 GPU, 4 vCPUs", 20, "  machine:  1 GPU, 4\n            vCPUs"),
            ("  one two three", 10, "  one two\n    three"),
            ("short", 10, "short"),
        ] {
            assert_eq!(wrap(line, room).join("\n"), expected);
        }
    }

    #[test]
    fn styles_take_no_room() {
        let line = "\u{1b}[1m│ one\u{1b}[0m two";
        assert_eq!(wrap(line, 9), [line]);
        assert_eq!(wrap(line, 6).join("\n"), "\u{1b}[1m│ one\u{1b}[0m\n│ two");
    }

    #[test]
    fn command_is_whole_or_continues_after_a_backslash() {
        let command = "paved wait ada -n team".replace(' ', "\u{a0}");
        let line = format!("Next: {command}");
        assert_eq!(wrap(&line, 40), ["Next: paved wait ada -n team"]);
        assert_eq!(wrap(&line, 25).join("\n"), "Next:\n  paved wait ada -n team");
        let narrow = wrap(&line, 18);
        assert_eq!(narrow.join("\n"), "Next: paved wait \\\n    ada -n team");
        assert!(narrow.iter().all(|line| line.len() <= 18), "{narrow:?}");
    }
}
