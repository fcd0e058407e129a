//! Work that goes on although nobody reads any more what it says, as behind `| head -1`.

use std::io;

use crate::failure::Failure;
use crate::{Console, Terminal};

/// Lets work write where it may: that a reader has left neither ends it nor becomes its outcome.
pub(crate) fn regardless(
    console: &mut Console<'_>,
    work: impl FnOnce(&mut Console<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let answer: Option<&mut dyn FnMut() -> io::Result<String>> = match &mut console.answer {
        Some(answer) => Some(&mut **answer),
        None => None,
    };
    let terminal = console.terminal.as_mut();
    let terminal =
        terminal.map(|Terminal { size, controls }| Terminal { size: *size, controls: &mut **controls });
    work(&mut Console {
        input: &mut *console.input,
        out: &mut Unread(&mut *console.out),
        err: &mut Unread(&mut *console.err),
        terminal,
        answer,
    })
}

/// A writer whose reader may leave.
struct Unread<'w>(&'w mut dyn io::Write);

impl io::Write for Unread<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_left(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_left(self.0.flush(), ())
    }
}

fn unless_left<T>(written: io::Result<T>, all: T) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(all),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_that_a_reader_has_left_is_no_failure() {
        for (kind, fails) in [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)] {
            let mut broken = Broken(kind);
            let mut unread = Unread(&mut broken);
            let written = writeln!(unread, "a line").and_then(|()| unread.flush());
            assert_eq!(written.is_err(), fails, "{kind}");
        }
    }
}
