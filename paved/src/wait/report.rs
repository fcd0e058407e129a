//! The output of a wait: a live tree on a terminal, or otherwise a line with the time for each
//! change.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use function_paved_road::diagnosis::Cause;
use function_paved_road::status::ResourceStatus;
use jiff::Timestamp;
use paved_client::environment::{Environment, age, is_refused, spell};
use paved_client::wait::{Goal, Watched};

use crate::Console;
use crate::live_view::LiveView;
use crate::show::{self, View};
use crate::style::{self, BOLD, Leaf, one_line};

/// After this time without changes, a line says that the wait continues. Pipelines may treat
/// silence as an end.
const SILENCE: Duration = Duration::from_mins(1);

/// The output so far.
pub(super) struct Report {
    begin: Instant,
    /// By index of the environment.
    shown: BTreeMap<usize, Arc<Environment>>,
    spoke: Instant,
    live: LiveView,
}

impl Report {
    pub(super) fn new(begin: Instant) -> Self {
        Self { begin, shown: BTreeMap::new(), spoke: begin, live: LiveView::default() }
    }

    /// Shows the current state: on a terminal the whole tree, otherwise changes of these
    /// environments.
    pub(super) fn show(
        &mut self,
        seen: &[Watched],
        places: &BTreeSet<usize>,
        clock: Timestamp,
        now: Instant,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        if console.terminal.is_some() {
            let frame = frame(seen, clock, View::new(false, console))?;
            return self.live.draw(&frame, console);
        }
        let mut news = Vec::new();
        for place in places {
            news.extend(lines(self.shown.get(place).map(Arc::as_ref), &seen[*place]));
            self.shown.insert(*place, Arc::clone(&seen[*place].environment));
        }
        if news.is_empty() && now.duration_since(self.spoke) >= SILENCE {
            let late = seen.iter().filter(|seen| !seen.environment.is_ready() && !seen.gone);
            news.extend(late.map(|seen| {
                format!("{} still {}", seen.environment.title(), state(&seen.environment))
            }));
        }
        self.say(&news, clock, now, console)
    }

    /// Prints a note about the connection.
    pub(super) fn note(&mut self, note: &str, console: &mut Console<'_>) -> io::Result<()> {
        self.live.leave();
        self.say(&[note.to_owned()], Timestamp::now(), Instant::now(), console)
    }

    /// Prints the result.
    pub(super) fn end(
        &mut self,
        seen: &[Watched],
        goal: &Goal,
        done: bool,
        now: Instant,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        self.live.leave();
        if !done {
            return Ok(());
        }
        let time = spell(now.duration_since(self.begin));
        for Watched { environment: one, .. } in seen {
            let is = match goal {
                Goal::Ready => "is ready".to_owned(),
                Goal::Running => "runs".to_owned(),
                Goal::Deleted => "is gone".to_owned(),
                Goal::Condition { kind, status } => format!("has {kind}={status}"),
            };
            let line = format!("{BOLD}{}{BOLD:#} {is} after {time}", one.title());
            if console.terminal.is_some() {
                writeln!(console.out, "{line}")?;
                if *goal != Goal::Deleted {
                    show::next(one, show::View::Folded, console)?;
                }
                continue;
            }
            self.say(&[line], Timestamp::now(), now, console)?;
            if *goal != Goal::Deleted {
                show::outcome(one, Timestamp::now(), &mut console.out)?;
            }
        }
        console.out.flush()
    }

    fn say(
        &mut self,
        news: &[String],
        clock: Timestamp,
        now: Instant,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        let clock = Timestamp::from_second(clock.as_second()).unwrap_or(clock);
        for line in news {
            writeln!(console.out, "{clock} {line}")?;
            self.spoke = now;
        }
        console.out.flush()
    }
}

/// One environment as a tree, or several environments as one line each.
fn frame(seen: &[Watched], clock: Timestamp, view: View) -> io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    if let [one] = seen {
        show::tree(&one.environment, clock, view, &mut frame)?;
        return Ok(frame);
    }
    let leaf = |seen: &Watched| {
        let one = &seen.environment;
        let word = if seen.gone { "Gone" } else { one.word() };
        let cells =
            vec![one.title(), word.to_owned(), one.progress.clone(), age(one.created, clock)];
        Leaf { mark: one.mark(), cells, note: one_line(&one.summary(clock)) }
    };
    style::tree(&seen.iter().map(leaf).collect::<Vec<_>>(), &mut frame)?;
    Ok(frame)
}

/// The changes: a line for the environment, and a line for each changed resource.
fn lines(before: Option<&Environment>, now: &Watched) -> Vec<String> {
    let seen = &now.environment;
    let title = seen.title();
    let mut lines = Vec::new();
    if now.gone {
        return lines;
    }
    let whole = |one: &Environment| (one.word().to_owned(), one.progress.clone());
    if before.map(whole) != Some(whole(seen)) {
        let sentence =
            if seen.parts.is_empty() || seen.refused().is_some() { seen.sentence() } else { "" };
        let sentence =
            if sentence.is_empty() { String::new() } else { format!(": {}", one_line(sentence)) };
        lines.push(
            format!("{title} {} {}", seen.word(), seen.progress).trim_end().to_owned() + &sentence,
        );
    }
    let told = |part: &ResourceStatus| (part.ready, part.reason.clone(), part.message.clone());
    for part in &seen.parts {
        let old = before.and_then(|before| before.parts.iter().find(|old| old.slot == part.slot));
        // In the first output, a resource has a line only if it is not ready or was rejected.
        let news = match old {
            Some(old) => told(old) != told(part),
            None => before.is_some() || !part.ready || is_refused(part),
        };
        if news {
            lines.push(format!("{title} {}", part_line(part)));
        }
    }
    let dropped = before.into_iter().flat_map(|before| &before.parts);
    let dropped = dropped.filter(|old| seen.parts.iter().all(|part| part.slot != old.slot));
    lines.extend(dropped.map(|part| format!("{title} {} ({}) is gone", part.slot, part.kind)));
    lines
}

fn part_line(part: &ResourceStatus) -> String {
    let state = part.reason.as_deref().unwrap_or(if part.ready { "Ready" } else { "Pending" });
    let id = part.external_name.as_deref().map(|id| format!(" {id}")).unwrap_or_default();
    let headline = part.cause.as_ref().map(Cause::headline);
    // For a waiting resource, the headline says more than the provider's message.
    let is_waiting = part.cause.as_ref().is_some_and(|cause| cause.code.is_waiting());
    let message = part.message.as_deref().filter(|_| !is_waiting).map(one_line);
    let words: Vec<String> = [headline, message].into_iter().flatten().collect();
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(": ")) };
    format!("{} ({}{id}) {state}{words}", part.slot, part.kind)
}

/// The state in one line: the phase, and the resources that are not ready.
pub(super) fn state(seen: &Environment) -> String {
    const SHOWN: usize = 5;
    let late: Vec<&ResourceStatus> =
        seen.parts.iter().filter(|part| !part.ready || is_refused(part)).collect();
    let mut told: Vec<String> = late.iter().take(SHOWN).map(|part| part_line(part)).collect();
    if late.len() > SHOWN {
        told.push(format!("{} more", late.len() - SHOWN));
    }
    if told.is_empty() && !seen.sentence().is_empty() {
        told.push(one_line(seen.sentence()));
    }
    let head = format!("{} {}", seen.word(), seen.progress);
    if told.is_empty() {
        head.trim_end().to_owned()
    } else {
        format!("{}; {}", head.trim_end(), told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::{creating, environment, half_made, ready, refused_leaf, set};
    use serde_json::{Value, json};

    use super::*;

    fn seen(object: &Value) -> Watched {
        Watched { environment: Arc::new(environment(object)), gone: false }
    }

    fn told(states: &[Value]) -> String {
        let mut before = None;
        let mut told = Vec::new();
        for state in states {
            told.extend(lines(before.as_ref(), &seen(state)));
            told.push("--".to_owned());
            before = Some(environment(state));
        }
        told.join("\n")
    }

    #[test]
    fn a_pipeline_reads_a_line_for_each_change() {
        let mut failed = half_made(&refused_leaf());
        failed["status"]["phase"] = json!("Failed");
        let mut fresh = half_made(&creating());
        fresh["status"] = json!({});
        let told = told(&[fresh, half_made(&creating()), half_made(&creating()), failed, ready()]);
        insta::assert_snapshot!(told, @r"
        GpuDevWorkspaceClaim team-vision/ada Pending
        --
        GpuDevWorkspaceClaim team-vision/ada Provisioning 2/3
        GpuDevWorkspaceClaim team-vision/ada egress (SecurityGroupEgressRule) Ready
        GpuDevWorkspaceClaim team-vision/ada instance (Instance) Creating: is being created
        GpuDevWorkspaceClaim team-vision/ada role (Role ada-x-role) Ready
        --
        --
        GpuDevWorkspaceClaim team-vision/ada Failed 2/3
        GpuDevWorkspaceClaim team-vision/ada instance (Instance i-0abc) Failed: Quota exceeded: VcpuLimitExceeded: your limit of 0 vCPUs allows no more
        --
        GpuDevWorkspaceClaim team-vision/ada Ready 3/3
        GpuDevWorkspaceClaim team-vision/ada instance (Instance i-0abc) Ready
        --
        ");
    }

    #[test]
    fn invalid_spec_is_reported_with_its_reason() {
        let mut object = ready();
        set(&mut object, "Provisioned", "False", "InvalidSpec", "spec.x: found y");
        assert_eq!(
            lines(None, &seen(&object)),
            ["GpuDevWorkspaceClaim team-vision/ada InvalidSpec 3/3: spec.x: found y"]
        );
    }

    fn at() -> Timestamp {
        "2026-01-01T10:05:00Z".parse().unwrap()
    }

    #[test]
    fn a_terminal_shows_a_tree() {
        let frame = frame(&[seen(&half_made(&refused_leaf()))], at(), View::Folded).unwrap();
        let text = anstream::adapter::strip_str(&String::from_utf8(frame).unwrap()).to_string();
        insta::assert_snapshot!(text, @r"
        GpuDevWorkspaceClaim team-vision/ada  Provisioning 2/3  5m
        │ instance: Quota exceeded
        │ Choose a smaller size, delete unused resources, or ask the platform team for a higher quota.
        │ instance (Instance): is being created
        ├─ ✗ Failed instance (Instance, 4m20s): Quota exceeded
        └─ ✓ 2 ready
        ");
    }

    #[test]
    fn several_environments_have_a_line_each() {
        let both = [seen(&ready()), seen(&half_made(&creating()))];
        let frame = frame(&both, at(), View::Folded).unwrap();
        let text = anstream::adapter::strip_str(&String::from_utf8(frame).unwrap()).to_string();
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
