//! The progress of the upload: a bar on a terminal, or otherwise a line at intervals.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use crate::Console;

/// The time between two lines without a terminal.
const SILENCE: Duration = Duration::from_secs(10);

/// The number of uploaded files and bytes.
#[derive(Default)]
pub(super) struct Done {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Done {
    pub(super) fn file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The display of the progress.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    files: usize,
    bytes: u64,
    spoke: Instant,
}

impl Progress {
    /// The interval between two updates.
    pub(super) const TICK: Duration = Duration::from_millis(100);

    pub(super) fn new(files: usize, bytes: u64, console: &Console<'_>) -> Self {
        let bar = console.terminal.is_some().then(|| {
            let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stdout());
            bar.with_style(style())
        });
        Self { bar, files, bytes, spoke: Instant::now() }
    }

    /// Shows the current progress.
    pub(super) fn show(&mut self, done: &Done, console: &mut Console<'_>) -> io::Result<()> {
        let (files, bytes) =
            (done.files.load(Ordering::Relaxed), done.bytes.load(Ordering::Relaxed));
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{files}/{} files", self.files));
            bar.set_position(bytes);
            return Ok(());
        }
        if self.spoke.elapsed() < SILENCE {
            return Ok(());
        }
        self.spoke = Instant::now();
        let clock = Timestamp::now();
        let clock = Timestamp::from_second(clock.as_second()).unwrap_or(clock);
        let (bytes, all) = (HumanBytes(bytes), HumanBytes(self.bytes));
        writeln!(
            console.out,
            "{clock} uploaded {files} of {} files, {bytes} of {all}",
            self.files
        )?;
        console.out.flush()
    }

    /// Clears the bar for later output.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A test checks that the template is valid.
fn style() -> ProgressStyle {
    ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar())
}

const TEMPLATE: &str = "{wide_bar} {msg}  {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_has_its_own_style() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
