//! The schema revision that an environment was created with.

use serde_json::{Value, json};

use super::{Test, disk, legacy, object, ready, slots};
use crate::observe::MADE_WITH;

const FIRST: &[&str] = &["first"];

/// Composes the slot `first`, and the slot `later` of revision 2.
fn compose(test: &Test) -> (Vec<String>, Value) {
    let answer = test
        .compose(|cx| {
            cx.managed("first", disk("here")).add()?;
            if cx.brings(2, &["later"]) {
                cx.managed("later", disk("here")).add()?;
            }
            Ok(())
        })
        .unwrap();
    let note = object(&answer, "first")["metadata"]["annotations"][MADE_WITH].clone();
    (slots(&answer).into_iter().map(str::to_owned).collect(), note)
}

fn made_with(revision: &str) -> Value {
    let mut first = ready();
    first["metadata"]["annotations"][MADE_WITH] = json!(revision);
    first
}

fn under(revision: u32, mut test: Test) -> Test {
    test.settings.schema_revision = Some(revision);
    test.first_slots = FIRST;
    test
}

#[test]
fn new_environment_records_its_revision_and_has_later_slots() {
    assert_eq!(compose(&under(2, legacy())), (vec!["first".into(), "later".into()], json!("2")));
}

#[test]
fn composition_of_the_first_revision_adds_no_later_slot() {
    assert_eq!(compose(&under(1, legacy())), (vec!["first".into()], Value::Null));
}

#[test]
fn upgrade_adds_no_slot_to_a_running_environment() {
    let upgraded = under(2, legacy().with("first", ready()));
    assert_eq!(compose(&upgraded), (vec!["first".into()], Value::Null));
}

#[test]
fn recorded_revision_is_kept_under_a_later_one() {
    let later = under(3, legacy().with("first", made_with("2")));
    assert_eq!(compose(&later), (vec!["first".into(), "later".into()], json!("2")));
}

#[test]
fn later_slot_that_exists_is_kept_under_an_older_composition() {
    let older = under(1, legacy().with("first", ready()).with("later", ready()));
    assert_eq!(compose(&older).0, ["first", "later"]);
}

/// Otherwise the Usage would disappear together with the recorded revision.
#[test]
fn deleted_later_slot_returns_while_its_usage_exists() {
    let usage = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "Usage"});
    let test = under(2, legacy().with("first", ready()).with("usage-first-by-later", usage));
    let answer = test.compose(|cx| {
        assert!(cx.brings(2, &["another", "later"]) && !cx.brings(2, &["another"]));
        cx.managed("first", disk("here")).add()?;
        cx.managed("later", disk("here")).add()?;
        cx.usage("first", "later")
    });
    assert_eq!(slots(&answer.unwrap()), ["first", "later", "usage-first-by-later"]);
}

#[test]
fn unreadable_note_counts_as_the_first_revision() {
    assert_eq!(compose(&under(2, legacy().with("first", made_with("two")))).0, ["first"]);
}
