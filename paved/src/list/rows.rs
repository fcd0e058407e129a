//! Rows of a table of environments.

use std::collections::{BTreeSet, HashMap};
use std::io;

use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::cluster::Kind;
use paved_client::environment::{Environment, age};

use crate::Console;
use crate::style::{self, Column, Mark, Row, one_line};

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
    owner: String,
    endpoint: String,
    composition: String,
    summary: String,
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
            owner: seen.owner.clone().unwrap_or_default(),
            endpoint: seen.connect().or_else(|| seen.endpoint()).unwrap_or_default(),
            composition: seen.composition.clone().unwrap_or_default(),
            summary: seen.summary(now),
        }
    }

    /// The row of a deleted environment.
    pub(super) fn gone(self) -> Self {
        Self { word: "Gone".to_owned(), mark: Mark::Busy, ..self }
    }

    /// The identity of the environment, which does not change.
    pub(super) fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone(), self.kind.clone(), self.group.clone())
    }
}

/// Namespace, name, kind and group.
pub(super) type Key = (String, String, String, String);

/// A table that can follow changes. An unchanged row is printed only once.
pub(super) struct Table {
    all_namespaces: bool,
    wide: bool,
    painted: style::Table,
    printed: HashMap<Key, Line>,
}

impl Table {
    pub(super) fn new(all_namespaces: bool, wide: bool) -> Self {
        let columns = columns(all_namespaces, wide);
        Self { all_namespaces, wide, painted: style::Table::new(columns), printed: HashMap::new() }
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
        let rows: Vec<Row> = lines.iter().map(|line| self.row(line, now)).collect();
        let room =
            console.terminal.as_ref().map(|terminal| (terminal.size)().1).filter(|room| *room > 0);
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

    fn row(&self, line: &Line, now: Timestamp) -> Row {
        let line = line.clone();
        let mut cells = if self.all_namespaces { vec![line.namespace] } else { Vec::new() };
        cells.extend([line.name, line.kind, line.word]);
        let mark = Some((cells.len() - 1, line.mark));
        cells.extend([line.progress, age(line.created, now), line.owner, line.endpoint]);
        if self.wide {
            cells.extend([line.group, line.composition, one_line(&line.summary)]);
        }
        Row { cells, mark }
    }
}

fn columns(all_namespaces: bool, wide: bool) -> Vec<Column> {
    let mut columns = if all_namespaces { vec![Column::fixed("NAMESPACE")] } else { Vec::new() };
    columns.extend(["NAME", "KIND", "PHASE", "PROGRESS", "AGE"].map(Column::fixed));
    columns.extend(["OWNER", "ENDPOINT"].map(Column::free));
    if wide {
        columns.extend(["GROUP", "COMPOSITION", "MESSAGE"].map(Column::free));
    }
    columns
}

/// `kind.group/name`, in kubectl's format.
pub(crate) fn name(kind: &Kind, object: &DynamicObject) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    format!("{}/{name}", kind.full_name().to_lowercase())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::{environment, half_made, ready, refused_leaf};
    use serde_json::json;

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

    fn lines() -> Vec<Line> {
        let mut failed = half_made(&refused_leaf());
        failed["metadata"]["name"] = json!("grace");
        failed["status"]["phase"] = json!("Failed");
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        vec![
            Line::from_environment(&environment(&failed), now),
            Line::from_environment(&environment(&ready()), now),
        ]
    }

    #[test]
    fn a_row_shows_phase_age_owner_and_endpoint() {
        insta::assert_snapshot!(print(&mut Table::new(false, false), lines()), @r"
        NAME   KIND                  PHASE   PROGRESS  AGE   OWNER        ENDPOINT
        ada    GpuDevWorkspaceClaim  Ready   3/3       120m  ada@acme.io  ssh developer@203.0.113.7
        grace  GpuDevWorkspaceClaim  Failed  2/3       120m  ada@acme.io
        ");
    }

    #[test]
    fn only_changed_rows_are_printed_again() {
        let mut table = Table::new(true, true);
        print(&mut table, lines());
        assert_eq!(print(&mut table, lines()), "");
        let gone = print(&mut table, vec![lines().remove(0).gone()]);
        assert!(
            gone.contains("grace") && gone.contains("Gone") && !gone.contains("NAME"),
            "{gone}"
        );
    }
}
