//! Standard output and standard error. Every text that the program prints goes through a
//! [`Stream`].
//!
//! Other people wrote much of that text: names in files, fields of objects, messages of API
//! servers. A terminal or a CI system could execute it. A [`Stream`] therefore prints
//!
//! - no control characters, except line feeds, tabs and the styles that this program uses itself;
//! - no characters that reorder text or end a line (see [`is_harmful`]);
//! - no workflow commands of CI systems, for example `::error::` or `##[error]`. Only
//!   [`Stream::verbatim`] prints them.
//!
//! JSON keeps its values, because a [`Stream`] escapes characters there instead of removing them.

use std::fmt;
use std::io;
use std::mem;
use std::str;

pub(crate) use crossplane::text::is_harmful;

use crate::wrap::{COMMAND_SPACE, wrap};

/// The number of columns of a terminal that reports fewer, or none.
const NARROWEST: usize = 20;

/// The maximum length of a style in bytes, while the stream waits for its end.
const LONGEST_STYLE: usize = 16;

/// Standard output or standard error.
pub struct Stream<'a> {
    to: &'a mut dyn io::Write,
    /// The start of an incomplete character or style.
    held: Vec<u8>,
    line: Line,
    /// The number of `#` at the end of the text so far.
    hashes: usize,
    form: Form,
    outlives_reader: bool,
    has_log: bool,
    /// The columns of the terminal.
    room: Option<&'a dyn Fn() -> usize>,
    wraps: bool,
    /// The start of a line that may have to be wrapped.
    begun: String,
}

/// The state of the current line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Only blanks, which CI systems trim.
    Blank,
    /// The first character is a colon.
    Colon,
    Begun,
}

/// The format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

/// Whether a CI system could read a workflow command in a text.
pub(crate) fn has_command(text: &str) -> bool {
    text.contains("##[")
        || text.contains("##v")
        || text.lines().any(|line| line.trim_start().starts_with("::"))
}

impl<'a> Stream<'a> {
    /// A stream that prints to this writer.
    pub fn new(to: &'a mut dyn io::Write) -> Self {
        Self {
            to,
            held: Vec::new(),
            line: Line::Blank,
            hashes: 0,
            form: Form::Text,
            outlives_reader: false,
            has_log: false,
            room: None,
            wraps: false,
            begun: String::new(),
        }
    }

    /// The same stream on a terminal with this number of columns. Lines of sentences are broken at
    /// words.
    #[must_use]
    pub fn with_room(self, room: Option<&'a dyn Fn() -> usize>) -> Self {
        Self { room, ..self }
    }

    /// Whether lines are wrapped from now on.
    pub(crate) fn set_wraps(&mut self, wraps: bool) {
        self.wraps = wraps;
    }

    /// Lets `write` print lines that are not wrapped, for example documents.
    pub(crate) fn whole<T, E: From<io::Error>>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.write_begun()?;
        let before = mem::replace(&mut self.wraps, false);
        let written = write(self);
        self.wraps = before;
        written
    }

    /// The same stream, which also gets the log of actions.
    #[must_use]
    pub fn with_log(self, has_log: bool) -> Self {
        Self { has_log, ..self }
    }

    /// Whether the stream gets the log of actions.
    pub(crate) fn has_log(&self) -> bool {
        self.has_log
    }

    /// The same stream with a shorter lifetime.
    pub(crate) fn reborrow(&mut self) -> Stream<'_> {
        Stream {
            to: &mut *self.to,
            held: mem::take(&mut self.held),
            line: self.line,
            hashes: self.hashes,
            form: self.form,
            outlives_reader: self.outlives_reader,
            has_log: self.has_log,
            room: self.room,
            wraps: self.wraps,
            begun: mem::take(&mut self.begun),
        }
    }

    /// Prints a formatted text, for `write!`.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        io::Write::write_fmt(self, text)
    }

    /// Flushes the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(self)
    }

    /// Treats a reader that closes the pipe, for example `| head -1`, no longer as an error.
    pub(crate) fn outlive_reader(&mut self) {
        self.outlives_reader = true;
    }

    /// Prints this program's own text unchanged. Foreign texts in it must already be escaped.
    pub(crate) fn verbatim(&mut self, text: &str) -> io::Result<()> {
        self.line = if text.ends_with('\n') { Line::Blank } else { Line::Begun };
        self.hashes = 0;
        self.write_begun()?;
        let written = self.to.write_all(text.as_bytes());
        self.unless_left(written)
    }

    /// Lets `write` print JSON, with harmful characters escaped instead of removed.
    pub(crate) fn json<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        self.write_begun()?;
        let before = mem::replace(&mut self.form, Form::Json);
        let written = write(self);
        self.form = before;
        written
    }

    fn unless_left(&self, written: io::Result<()>) -> io::Result<()> {
        match written {
            Err(error) if self.outlives_reader && error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(())
            }
            other => other,
        }
    }

    /// Cleans the bytes so far, and keeps an incomplete end.
    fn clean(&mut self) -> String {
        let (text, rest) = decoded(&mem::take(&mut self.held));
        self.held = rest;
        let mut clean = String::with_capacity(text.len());
        let mut left = text.as_str();
        while let Some(c) = left.chars().next() {
            match style(left) {
                Style::Own(length) if self.form == Form::Text => {
                    clean.push_str(&left[..length]);
                    left = &left[length..];
                }
                Style::Incomplete => {
                    self.held.splice(..0, left.bytes());
                    break;
                }
                _ => {
                    left = &left[c.len_utf8()..];
                    self.push(c, left.chars().next(), &mut clean);
                }
            }
        }
        clean
    }

    /// The text as the terminal shows it: whole lines are wrapped, and the start of a line waits for
    /// its end.
    fn laid_out(&mut self, clean: String) -> String {
        if self.form == Form::Json {
            return clean;
        }
        let Some(room) = self.room.filter(|_| self.wraps) else {
            return clean.replace(COMMAND_SPACE, " ");
        };
        self.begun.push_str(&clean);
        let Some(end) = self.begun.rfind('\n') else { return String::new() };
        let rest = self.begun.split_off(end + 1);
        let lines = mem::replace(&mut self.begun, rest);
        let room = room().max(NARROWEST);
        lines.lines().flat_map(|line| wrap(line, room)).map(|line| line + "\n").collect()
    }

    /// Prints the start of a line, for example of a question.
    fn write_begun(&mut self) -> io::Result<()> {
        let begun = mem::take(&mut self.begun);
        let Some(room) = self.room.filter(|_| !begun.is_empty()) else { return Ok(()) };
        let begun = wrap(&begun, room().max(NARROWEST)).join("\n");
        let written = self.to.write_all(begun.as_bytes());
        self.unless_left(written)
    }

    fn push(&mut self, c: char, next: Option<char>, clean: &mut String) {
        let splits = self.hashes >= 2 && (c == '[' || c == 'v');
        // Three colons, for example before a position in a file, are not a command.
        let is_second_colon = self.line == Line::Colon && c == ':' && next != Some(':');
        match self.form {
            Form::Json if splits || (is_harmful(c) && c != '\t') => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a String never fails.
                    _ = fmt::Write::write_fmt(clean, format_args!("\\u{unit:04x}"));
                }
            }
            Form::Text if is_harmful(c) && c != '\t' => return,
            Form::Text if splits || is_second_colon => clean.extend([' ', c]),
            _ => clean.push(c),
        }
        self.hashes = if c == '#' { self.hashes + 1 } else { 0 };
        self.line = match (self.line, c) {
            (_, '\n') => Line::Blank,
            (Line::Blank, c) if c.is_whitespace() => Line::Blank,
            (Line::Blank, ':') => Line::Colon,
            _ => Line::Begun,
        };
    }
}

impl io::Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        let clean = self.clean();
        let text = self.laid_out(clean);
        let written = self.to.write_all(text.as_bytes());
        self.unless_left(written).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_begun()?;
        let flushed = self.to.flush();
        self.unless_left(flushed)
    }
}

/// The text in bytes, and an incomplete character at the end.
fn decoded(bytes: &[u8]) -> (String, Vec<u8>) {
    let (mut text, mut rest) = (String::with_capacity(bytes.len()), bytes);
    loop {
        match str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return (text, Vec::new());
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let Some(length) = error.error_len() else { return (text, after.to_vec()) };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &after[length..];
            }
        }
    }
}

/// The start of a text.
enum Style {
    /// A style of this program, with its length in bytes.
    Own(usize),
    /// A text that could become a style.
    Incomplete,
    None,
}

/// Whether a text begins with a style of this program: bold, dim, italic, underlined, or a
/// foreground colour. Other styles could hide the text after them.
fn style(text: &str) -> Style {
    let Some(rest) = text.strip_prefix('\u{1b}') else { return Style::None };
    let Some(rest) = rest.strip_prefix('[') else {
        return if rest.is_empty() { Style::Incomplete } else { Style::None };
    };
    let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    let is_own = |number: &str| {
        matches!(
            number,
            "" | "0"
                | "1"
                | "2"
                | "3"
                | "4"
                | "31"
                | "32"
                | "33"
                | "34"
                | "35"
                | "36"
                | "91"
                | "92"
                | "93"
                | "94"
                | "95"
                | "96"
        )
    };
    match rest.as_bytes().get(length) {
        Some(b'm') if rest[..length].split(';').all(is_own) => {
            Style::Own(length + "\u{1b}[m".len())
        }
        None if length < LONGEST_STYLE => Style::Incomplete,
        _ => Style::None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write as _;

    use super::*;

    fn printed(write: impl FnOnce(&mut Stream<'_>)) -> String {
        let mut bytes = Vec::new();
        write(&mut Stream::new(&mut bytes));
        String::from_utf8(bytes).unwrap()
    }

    fn text(texts: &[&str]) -> String {
        printed(|stream| texts.iter().for_each(|text| stream.write_all(text.as_bytes()).unwrap()))
    }

    #[test]
    fn control_characters_of_others_are_removed() {
        for (given, shown) in [
            ("a\u{1b}]0;title\u{7}b\n", "a]0;titleb\n"),
            ("a\u{1b}[2Jb\rc\u{9b}1Ad\u{7f}", "a[2Jbc1Ad"),
            ("admin\u{202e}x\u{2066}y\u{200e}z\u{2028}", "adminxyz"),
            ("\u{1b}[8mhidden\u{1b}[38;5;1mx\u{1b}[1;7mx", "[8mhidden[38;5;1mx[1;7mx"),
            ("a – “b” … é\tc", "a – “b” … é\tc"),
        ] {
            assert_eq!(text(&[given]), shown, "{given:?}");
        }
    }

    #[test]
    fn own_styles_pass_in_any_pieces() {
        let styled = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: ü\n";
        assert_eq!(text(&[styled]), styled);
        let bytes = printed(|stream| {
            styled.bytes().for_each(|byte| stream.write_all(&[byte]).unwrap());
        });
        assert_eq!(bytes, styled);
        assert_eq!(text(&["\u{1b}", "[2", "J"]), "[2J", "a split sequence is removed too");
    }

    #[test]
    fn workflow_commands_of_others_are_broken() {
        for (given, shown) in [
            ("::warning::x\n", ": :warning::x\n"),
            ("a\n \t::stop-commands::x", "a\n \t: :stop-commands::x"),
            ("\u{1b}[1m::error::x", "\u{1b}[1m: :error::x"),
            ("\u{200e}:\u{202e}:error::x", ": :error::x"),
            ("a ##[error]x ##vso[task.x]", "a ## [error]x ## vso[task.x]"),
            ("std::io: a::b", "std::io: a::b"),
            ("  ::: claims.yaml:34:10", "  ::: claims.yaml:34:10"),
        ] {
            assert_eq!(text(&[given]), shown, "{given:?}");
        }
        assert_eq!(text(&["a\n", ":", ":error::x"]), "a\n: :error::x", "in pieces");
        let command = "::error::x\n";
        assert_eq!(printed(|stream| stream.verbatim(command).unwrap()), command);
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!({"k\u{9b}": "\u{1b}[1m\u{202e}x\u{7f} ##[error]y\n::z ü"});
        let json = printed(|stream| {
            stream.json(|out| Ok(serde_json::to_writer_pretty(out, &value)?)).unwrap();
        });
        assert!(!json.chars().any(is_harmful) && !has_command(&json), "{json:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
    }

    #[test]
    fn closed_reader_does_not_stop_the_work() {
        struct Broken(io::ErrorKind);
        impl io::Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Err(self.0.into())
            }
        }
        for (kind, outlives, fails) in [
            (io::ErrorKind::BrokenPipe, true, false),
            (io::ErrorKind::BrokenPipe, false, true),
            (io::ErrorKind::StorageFull, true, true),
        ] {
            let mut broken = Broken(kind);
            let mut stream = Stream::new(&mut broken);
            if outlives {
                stream.outlive_reader();
            }
            let written = writeln!(stream, "a line").and_then(|()| stream.flush());
            assert_eq!(written.is_err(), fails, "{kind}");
        }
    }

    /// The sources of the command line.
    const SOURCES: [&str; 4] = [
        "paved/src",
        "crates/paved-client/src",
        "crates/paved-portal/src",
        "crates/paved-render/src",
    ];

    /// Lines that use the streams of the process, or print verbatim: the file, and a piece of the
    /// line.
    const OWNERS: [(&str, &str); 11] = [
        // Checks whether a user can answer.
        ("crates/paved-client/src/cluster.rs", "stderr().is_terminal()"),
        // The output of a remote command, as ssh passes it on.
        ("paved/src/connect/ssm_exit_code.rs", "let mut out = io::stdout();"),
        // The bytes of an SSH program, and the terminal in their place.
        ("paved/src/connect/stdio.rs", "let output = io::stdout().as_fd()"),
        ("paved/src/connect/stdio.rs", "open(\"/dev/tty\")"),
        ("paved/src/connect/stdio.rs", "dup2_stdout(io::stderr())"),
        // Numbers only.
        ("paved/src/publish/progress.rs", "ProgressDrawTarget::stdout()"),
        ("paved/src/lib.rs", "message.use_stderr()"),
        // The format of the log.
        ("crates/paved-portal/src/lib.rs", "stderr().is_terminal()"),
        // Our own completions.
        ("paved/src/lib.rs", "console.out.verbatim(&completions(shell))"),
        // Workflow commands, escaped.
        ("paved/src/validate/github.rs", "command(found, problem)"),
        ("paved/src/validate/github.rs", "::notice::"),
    ];

    #[test]
    fn every_text_goes_through_a_stream() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders = SOURCES.map(|folder| root.join(folder)).to_vec();
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let file = path.strip_prefix(&root).unwrap().display().to_string();
                if ["paved/src/main.rs", "paved/src/stream.rs"].contains(&file.as_str()) {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let ways = [
                    "print!(",
                    "println!(",
                    "dbg!(",
                    "stdout()",
                    "stderr()",
                    "verbatim(",
                    "/dev/tty",
                ];
                let prints = |line: &&str| ways.iter().any(|way| line.contains(way));
                let is_owner = |line: &&str| {
                    OWNERS.iter().any(|(of, part)| *of == file && line.contains(part))
                };
                found.extend(
                    text.lines()
                        .filter(|line| prints(line) && !is_owner(line))
                        .map(|line| format!("{file}: {}", line.trim())),
                );
            }
        }
        assert!(found.is_empty(), "print through Console's streams: {found:#?}");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(
            printed(|stream| stream.write_all(b"a\xff\xc3b").unwrap()),
            "a\u{fffd}\u{fffd}b"
        );
    }
}
