//! A table that follows changes, with a row for each change.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::StreamExt;
use futures::stream::{self, SelectAll};
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use paved_client::cluster::{Contact, Kind, cause, is_denied, watch, while_allowed};
use paved_client::environment::Environment;

use super::Place;
use super::rows::{Key, Line, Table};
use crate::Console;
use crate::failure::Failure;

/// Prints a table of all environments, and then a row for each change until the command is stopped.
pub(super) async fn run(
    place: &Place,
    table: Table,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let watched = place.kinds.iter().enumerate().map(|(index, kind)| {
        let events = watch(&place.cluster, kind, place.namespace.as_deref(), None);
        while_allowed(events).map(move |event| (index, event.map_err(cause))).boxed()
    });
    let mut events: SelectAll<_> = stream::select_all(watched);
    let mut follow = Follow::new(place, table);
    while let Some((index, event)) = events.next().await {
        if follow.waits_for_all() {
            follow.begin(index, event, console)?;
        } else {
            follow.go_on(index, event, console)?;
        }
        console.out.flush()?;
    }
    Ok(())
}

type Change = kube::Result<Event<DynamicObject>>;

/// The state of a watch.
struct Follow<'p> {
    place: &'p Place,
    table: Table,
    contact: Contact,
    /// The kinds without a complete first list.
    waiting: HashSet<usize>,
    first: BTreeMap<Key, Line>,
    denied: Vec<(&'p Kind, kube::Error)>,
    /// For each kind, the rows of the current list so far.
    shown: Vec<BTreeSet<Key>>,
}

impl<'p> Follow<'p> {
    fn new(place: &'p Place, table: Table) -> Self {
        let count = place.kinds.len();
        Self {
            place,
            table,
            contact: Contact::default(),
            waiting: (0..count).collect(),
            first: BTreeMap::new(),
            denied: Vec::new(),
            shown: vec![BTreeSet::new(); count],
        }
    }

    fn waits_for_all(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Collects the first lists. A failure ends the command, as without `--watch`.
    fn begin(
        &mut self,
        index: usize,
        event: Change,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        match event {
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let line = line(&object);
                self.first.insert(line.key(), line);
            }
            Ok(Event::Delete(object)) => {
                self.first.remove(&line(&object).key());
            }
            Ok(Event::Init) => {}
            Ok(Event::InitDone) => drop(self.waiting.remove(&index)),
            Err(error) if is_denied(&error) && self.waiting.contains(&index) => {
                self.waiting.remove(&index);
                self.denied.push((&self.place.kinds[index], error));
            }
            Err(error) => return Err(self.place.explain(&error, &self.place.kinds[index])),
        }
        if self.waits_for_all() {
            return Ok(());
        }
        self.place.tell_denied(&std::mem::take(&mut self.denied), console)?;
        if self.first.is_empty() {
            writeln!(console.err, "{}; waiting for new environments", self.place.nothing())?;
        }
        let first = std::mem::take(&mut self.first).into_values().collect();
        self.print(first, console)
    }

    fn go_on(
        &mut self,
        index: usize,
        event: Change,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let (place, kind) = (self.place, &self.place.kinds[index]);
        let note = match &event {
            Ok(event) => self.contact.heard(index, event, &place.cluster),
            Err(error) => {
                self.contact.broke(index, error, true, &place.act("watch", kind), &place.cluster)?
            }
        };
        if let Some(note) = note {
            writeln!(console.err, "note: {note}")?;
        }
        let lines = match event {
            Ok(Event::Init) => {
                self.shown[index].clear();
                Vec::new()
            }
            Ok(Event::InitApply(object)) => {
                let line = line(&object);
                self.shown[index].insert(line.key());
                vec![line]
            }
            Ok(Event::Apply(object)) => vec![line(&object)],
            Ok(Event::Delete(object)) => vec![line(&object).gone()],
            Ok(Event::InitDone) => {
                self.table.missing(kind, &std::mem::take(&mut self.shown[index]))
            }
            Err(_) => Vec::new(),
        };
        self.print(lines, console)
    }

    fn print(&mut self, lines: Vec<Line>, console: &mut Console<'_>) -> Result<(), Failure> {
        if !lines.is_empty() {
            self.table.print(lines, Timestamp::now(), console)?;
        }
        Ok(())
    }
}

/// The current row of an object.
fn line(object: &DynamicObject) -> Line {
    Line::from_environment(&Environment::from_object(object), Timestamp::now())
}
