//! Differences between two texts, for the terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use paved_render::composed::Slots;
use similar::{ChangeTag, TextDiff};

use crate::documents::yaml;
use crate::failure::Failure;
use crate::style::{DIM, GREEN, RED};

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// Marks removed lines with `-` and added lines with `+`, among some unchanged lines.
pub(crate) fn between(title: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut told = String::new();
    for group in diff.grouped_ops(CONTEXT) {
        let head = if told.is_empty() { title } else { "…" };
        _ = writeln!(told, "{DIM}@@ {head} @@{DIM:#}");
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', RED),
                ChangeTag::Insert => ('+', GREEN),
                ChangeTag::Equal => (' ', DIM),
            };
            let line = change.value().trim_end_matches('\n');
            _ = writeln!(told, "{style}{sign} {line}{style:#}");
        }
    }
    told
}

/// `1 new, 2 changed, 0 gone`, and the changes line by line. `None` if nothing changes.
pub(crate) fn compare(before: &Slots, after: &Slots) -> Result<Option<String>, Failure> {
    let slots: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let text = |slots: &Slots, slot| slots.get(slot).map_or_else(|| Ok(String::new()), yaml);
    let (mut told, [mut new, mut changed, mut gone]) = (String::new(), [0, 0, 0]);
    for slot in slots {
        let difference = between(slot, &text(before, slot)?, &text(after, slot)?);
        match (before.contains_key(slot), after.contains_key(slot)) {
            _ if difference.is_empty() => {}
            (false, _) => new += 1,
            (true, false) => gone += 1,
            (true, true) => changed += 1,
        }
        told.push_str(&difference);
    }
    let is_same = told.is_empty();
    Ok((!is_same).then(|| format!("{new} new, {changed} changed, {gone} gone\n{told}")))
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn diff_shows_removed_and_added_lines() {
        let before = "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\n";
        let told = between("X a/b", before, &before.replace("e: 5", "e: 9"));
        let told = anstream::adapter::strip_str(&told).to_string();
        assert_eq!(told, "@@ X a/b @@\n  b: 2\n  c: 3\n  d: 4\n- e: 5\n+ e: 9\n  f: 6\n");
        assert_eq!(between("X a/b", before, before), "");
    }
}
