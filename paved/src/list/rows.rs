//! Rows of a table of environments.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::io;

use function_paved_road::power::PowerState;
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::cluster::Kind;
use paved_client::environment::{Environment, age, power_word, until};

use crate::Console;
use crate::cli::Sort;
use crate::style::{self, Column, Mark, Row, harmless_name, one_line};

/// The values of an environment's row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    namespace: String,
    name: String,
    kind: String,
    group: String,
    word: String,
    mark: Mark,
    progress: String,
    created: Option<Timestamp>,
    power: &'static str,
    /// US dollars per hour at this power state; empty if unknown.
    price: String,
    /// Whether the status has a lifecycle.
    has_lifecycle: bool,
    is_stopped: bool,
    end: Option<Timestamp>,
    owner: String,
    endpoint: String,
    composition: String,
    summary: String,
    /// Why the environment has failed or is out of sync; otherwise empty.
    reason: String,
}

impl Line {
    pub(super) fn from_environment(seen: &Environment, now: Timestamp) -> Self {
        Self {
            namespace: seen.namespace.clone(),
            name: seen.name.clone(),
            kind: seen.kind.clone(),
            group: seen.group.clone(),
            word: seen.word().to_owned(),
            mark: seen.mark(),
            progress: seen.progress.clone(),
            created: seen.created,
            power: seen.power.map(power_word).unwrap_or_default(),
            price: seen
                .price
                .as_ref()
                .map(|price| price.now(seen.power).to_owned())
                .unwrap_or_default(),
            has_lifecycle: seen.lifecycle.is_some(),
            is_stopped: is_stopped(seen),
            end: end(seen),
            owner: seen.owner.clone().unwrap_or_default(),
            endpoint: seen.connect().or_else(|| seen.endpoint()).unwrap_or_default(),
            composition: seen.composition.clone().unwrap_or_default(),
            summary: seen.summary(now),
            reason: reason(seen, now),
        }
    }

    /// Whether the environment has failed or is out of sync.
    pub(super) fn needs_attention(&self) -> bool {
        !self.reason.is_empty()
    }

    /// The command that shows the environment.
    pub(super) fn status(&self) -> String {
        format!("paved status {} -n {}", self.name, self.namespace)
    }

    /// The row of a deleted environment.
    pub(super) fn gone(self) -> Self {
        Self { word: "Gone".to_owned(), mark: Mark::Busy, ..self }
    }

    /// The time until the next end.
    fn time_left(&self, now: Timestamp) -> String {
        match self.end.map(|at| until(at, now)) {
            Some(left) if self.is_stopped => {
                format!("{} (deletion)", left.as_deref().unwrap_or("due"))
            }
            Some(left) => left.unwrap_or_else(|| "expired".to_owned()),
            None if self.has_lifecycle => "never".to_owned(),
            None => String::new(),
        }
    }

    /// The identity of the environment, which does not change.
    pub(super) fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone(), self.kind.clone(), self.group.clone())
    }
}

/// Why an environment needs attention, in one line.
fn reason(seen: &Environment, now: Timestamp) -> String {
    if seen.mark() != Mark::Bad && seen.word() != "OutOfSync" {
        return String::new();
    }
    let Some(diagnosis) = seen.diagnosis().filter(|diagnosis| diagnosis.counts(now)) else {
        return one_line(seen.sentence());
    };
    let slot = diagnosis.slot.map(|slot| format!("{slot}: ")).unwrap_or_default();
    one_line(&format!("{slot}{}", diagnosis.cause.headline()))
}

/// Whether an environment is stopped or is being stopped. Its expiry has no effect then.
fn is_stopped(seen: &Environment) -> bool {
    let stopped_at = seen.lifecycle.as_ref().and_then(|lifecycle| lifecycle.stopped_at);
    stopped_at.is_some() || seen.power == Some(PowerState::Stopped)
}

/// The next end of an environment: the deletion of a stopped environment, otherwise the expiry.
pub(super) fn end(seen: &Environment) -> Option<Timestamp> {
    let lifecycle = seen.lifecycle.as_ref()?;
    if is_stopped(seen) { lifecycle.deletes_at } else { lifecycle.expires_at }
}

/// Namespace, name, kind and group.
pub(super) type Key = (String, String, String, String);

/// A table that can follow changes. An unchanged row is printed only once.
pub(super) struct Table {
    all_namespaces: bool,
    wide: bool,
    sort: Sort,
    painted: style::Table,
    printed: HashMap<Key, Line>,
}

impl Table {
    pub(super) fn new(all_namespaces: bool, wide: bool, sort: Sort) -> Self {
        let painted = style::Table::new(columns(all_namespaces, wide));
        Self { all_namespaces, wide, sort, painted, printed: HashMap::new() }
    }

    /// Prints the new or changed lines, sorted. The first call prints the column heads.
    pub(super) fn print(
        &mut self,
        mut lines: Vec<Line>,
        now: Timestamp,
        console: &mut Console<'_>,
    ) -> io::Result<()> {
        lines.retain(|line| self.printed.get(&line.key()) != Some(line));
        lines.sort_by_key(Line::key);
        // The order by name stays among equal rows.
        match self.sort {
            Sort::Name => {}
            Sort::Age => lines.sort_by_key(|line| Reverse(line.created)),
            Sort::TimeLeft => lines.sort_by_key(|line| line.end.unwrap_or(Timestamp::MAX)),
            Sort::Power => lines.sort_by_key(|line| line.power),
        }
        // A wide table is never cut.
        let size = console.terminal.as_ref().filter(|_| !self.wide).map(|terminal| terminal.size);
        let room = size.map(|size| size().1).filter(|room| *room > 0);
        let is_cut = room.is_some();
        let rows: Vec<Row> = lines.iter().map(|line| self.row(line, is_cut, now)).collect();
        self.painted.print(&rows, room, &mut console.out)?;
        self.printed.extend(lines.into_iter().map(|line| (line.key(), line)));
        Ok(())
    }

    /// The printed lines of a kind that a new list does not have. Their environments were deleted
    /// without an event.
    pub(super) fn missing(&self, kind: &Kind, there: &BTreeSet<Key>) -> Vec<Line> {
        let is_kind = |line: &&Line| line.kind == kind.name() && line.group == kind.resource.group;
        let lines =
            self.printed.values().filter(is_kind).filter(|line| !there.contains(&line.key()));
        lines.cloned().map(Line::gone).collect()
    }

    /// The row of a line. If cells may be cut, the reason stands below the row.
    fn row(&self, line: &Line, is_cut: bool, now: Timestamp) -> Row {
        let (power, left) = (line.power.to_owned(), line.time_left(now));
        let line = line.clone();
        let mut cells = if self.all_namespaces { vec![line.namespace] } else { Vec::new() };
        cells.extend([line.name, line.kind, line.word]);
        let mark = Some((cells.len() - 1, line.mark));
        cells.extend([line.progress, age(line.created, now), left, power, line.price]);
        cells.extend([line.owner, line.endpoint]);
        if self.wide {
            cells.extend([line.group, line.composition, harmless_name(&line.summary)]);
            return Row { cells, mark, note: String::new() };
        }
        let (reason, note) =
            if is_cut { (String::new(), line.reason) } else { (line.reason, String::new()) };
        cells.push(reason);
        Row { cells, mark, note }
    }
}

fn columns(all_namespaces: bool, wide: bool) -> Vec<Column> {
    let mut columns = if all_namespaces { vec![Column::fixed("NAMESPACE")] } else { Vec::new() };
    columns.extend(["NAME", "KIND", "PHASE", "PROGRESS", "AGE"].map(Column::fixed));
    columns.extend(["LEFT", "POWER", "USD/H", "OWNER", "ENDPOINT"].map(Column::free));
    if wide {
        columns.extend(["GROUP", "COMPOSITION", "MESSAGE"].map(Column::free));
    } else {
        columns.push(Column::note("REASON"));
    }
    columns
}

/// `kind.group/name`, in kubectl's format. In front of it is the namespace, if the next command
/// would otherwise look into another one.
pub(crate) fn name(kind: &Kind, object: &DynamicObject, has_namespace: bool) -> String {
    let (metadata, kind) = (&object.metadata, kind.full_name().to_lowercase());
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref().filter(|_| has_namespace) {
        Some(namespace) => format!("{namespace}/{kind}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::{environment, half_made, ready, refused_leaf};
    use serde_json::{Value, json};

    use super::*;
    use crate::Stream;

    fn print(table: &mut Table, lines: Vec<Line>) -> String {
        let (mut out, mut sink) = (Vec::new(), io::sink());
        let mut console = Console {
            input: &mut |_| Ok(0),
            out: Stream::new(&mut out),
            err: Stream::new(&mut sink),
            terminal: None,
            answer: None,
        };
        table.print(lines, "2026-01-01T12:00:00Z".parse().unwrap(), &mut console).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    fn table() -> Table {
        Table::new(false, false, Sort::Name)
    }

    /// An environment of this name, with this expiry.
    fn expiring(name: &str, lifecycle: Value) -> Line {
        let mut object = ready();
        object["metadata"]["name"] = json!(name);
        object["status"]["lifecycle"] = lifecycle;
        Line::from_environment(&environment(&object), Timestamp::UNIX_EPOCH)
    }

    /// An environment of this name that stopped at its expiry, with this time of its deletion.
    fn stopped(name: &str, deletes_at: Value) -> Line {
        let at = "2026-01-01T11:00:00Z";
        let mut lifecycle = json!({"expiresAt": at, "stoppedAt": at, "stopReason": "Expired"});
        lifecycle["deletesAt"] = deletes_at;
        expiring(name, lifecycle)
    }

    fn lines() -> Vec<Line> {
        let mut failed = half_made(&refused_leaf());
        failed["metadata"]["name"] = json!("grace");
        failed["status"]["phase"] = json!("Failed");
        let mut runs = ready();
        runs["status"]["power"] = json!("Running");
        runs["status"]["lifecycle"] = json!({"expiresAt": "2026-01-01T18:00:00Z"});
        runs["status"]["estimatedHourlyUSD"] = json!("0.542");
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        vec![
            Line::from_environment(&environment(&failed), now),
            Line::from_environment(&environment(&runs), now),
        ]
    }

    #[test]
    fn a_row_shows_phase_age_owner_and_endpoint() {
        insta::assert_snapshot!(print(&mut table(), lines()), @r"
        NAME   KIND                  PHASE   PROGRESS  AGE   LEFT  POWER    USD/H  OWNER        ENDPOINT                   REASON
        ada    GpuDevWorkspaceClaim  Ready   3/3       120m  6h    Running  0.542  ada@acme.io  ssh developer@203.0.113.7
        grace  GpuDevWorkspaceClaim  Failed  2/3       120m                        ada@acme.io                             instance: Quota exceeded
        ");
    }

    #[test]
    fn rows_by_time_left_begin_with_the_shortest() {
        let lines = vec![
            expiring("a", json!({})),
            expiring("b", json!({"expiresAt": "2026-01-02T12:00:00Z"})),
            expiring("c", json!({"expiresAt": "2026-01-01T13:00:00Z"})),
            expiring("d", json!({"expiresAt": "2026-01-01T11:00:00Z"})),
            stopped("e", json!("2026-01-01T17:00:00Z")),
            stopped("f", json!("2026-01-01T11:30:00Z")),
            stopped("g", Value::Null),
        ];
        let told = print(&mut Table::new(false, false, Sort::TimeLeft), lines);
        let expected = [
            ("d", " expired "),
            ("f", " due (deletion) "),
            ("c", " 60m "),
            ("e", " 5h (deletion) "),
            ("b", " 24h "),
            ("a", " never "),
            ("g", " never "),
        ];
        assert_eq!(told.lines().count(), expected.len() + 1, "{told}");
        for (line, (name, left)) in told.lines().skip(1).zip(expected) {
            assert!(line.starts_with(name) && line.contains(left), "{name}: {left}: {told}");
        }
    }

    #[test]
    fn only_changed_rows_are_printed_again() {
        let mut table = Table::new(true, true, Sort::Name);
        print(&mut table, lines());
        assert_eq!(print(&mut table, lines()), "");
        let gone = print(&mut table, vec![lines().remove(0).gone()]);
        assert!(
            gone.contains("grace") && gone.contains("Gone") && !gone.contains("NAME"),
            "{gone}"
        );
    }
}
