#![allow(clippy::unwrap_used)]
use paved_client::samples::kinds;
use serde_json::json;

use super::*;
use crate::live::Part;

fn kind() -> Arc<Kind> {
    Arc::new(kinds().called("gpuws").unwrap().remove(0))
}

fn object(name: &str, uid: &str, version: &str) -> DynamicObject {
    let kind = kind();
    serde_json::from_value(
        json!({"apiVersion": kind.resource.api_version, "kind": kind.name(), "spec": {},
        "metadata": {"name": name, "namespace": "team", "uid": uid, "resourceVersion": version}}),
    )
    .unwrap()
}

/// The recorded changes after the first `since` ones.
fn told(live: &Live, since: usize) -> Vec<(Action, String)> {
    let backlog = live.start(true).backlog;
    backlog
        .iter()
        .skip(since)
        .map(|change| (change.action, change.entry.view.uid.clone()))
        .collect()
}

/// The state of a client that sees all environments.
fn known(live: &Live) -> StateHash {
    live.all().iter().fold(StateHash::default(), |known, entry| known.with(entry.known))
}

#[test]
fn repeated_version_is_reported_once() {
    let live = Live::new("e".into());
    for version in ["1", "1", "2", "2"] {
        live.put(&object("ada", "u", version), &kind());
    }
    let both = [(Action::Added, "u".to_owned()), (Action::Modified, "u".to_owned())];
    assert_eq!(told(&live, 0), both);
}

#[test]
fn new_version_of_the_kind_is_a_change() {
    let live = Live::new("e".into());
    let mut later = Arc::unwrap_or_clone(kind());
    later.resource.version = "v2".into();
    live.put(&object("ada", "u", "1"), &kind());
    live.put(&object("ada", "u", "1"), &Arc::new(later));
    assert_eq!(told(&live, 1), [(Action::Modified, "u".to_owned())]);
}

#[test]
fn object_recreated_with_the_same_name_is_another_object() {
    let live = Live::new("e".into());
    live.put(&object("ada", "u", "1"), &kind());
    live.put(&object("ada", "v", "2"), &kind());
    let all = [(Action::Deleted, "u".to_owned()), (Action::Added, "v".to_owned())];
    assert_eq!(told(&live, 1), all);
    live.remove(&object("ada", "u", "1"), &kind());
    assert_eq!(live.all().len(), 1, "a late deletion of the first keeps the second");
}

#[test]
fn object_missing_after_a_relist_is_reported_as_deleted() {
    let live = Live::new("e".into());
    live.put(&object("ada", "u", "1"), &kind());
    live.put(&object("bob", "v", "1"), &kind());
    live.keep_only(&kind().full_name(), &BTreeSet::from([key(&kind(), &object("bob", "v", "1"))]));
    assert_eq!(told(&live, 2), [(Action::Deleted, "u".to_owned())]);
    live.keep_only("Other.group", &BTreeSet::new());
    assert_eq!(live.all().len(), 1);
}

#[test]
fn every_change_can_be_taken_back() {
    let live = Live::new("e".into());
    let changes: [&dyn Fn(); 6] = [
        &|| live.put(&object("ada", "u", "1"), &kind()),
        &|| live.put(&object("bob", "v", "2"), &kind()),
        &|| live.put(&object("ada", "u", "3"), &kind()),
        &|| live.remove(&object("bob", "v", "4"), &kind()),
        &|| live.put(&object("bob", "w", "5"), &kind()),
        &|| {
            live.keep_only(
                &kind().full_name(),
                &BTreeSet::from([key(&kind(), &object("ada", "u", "3"))]),
            );
        },
    ];
    let mut states = vec![known(&live)];
    for change in changes {
        change();
        states.push(known(&live));
    }
    let mut there = states.pop().unwrap();
    for change in live.start(true).backlog.iter().rev() {
        there = there.without(change.step);
        assert_eq!(Some(there), states.pop());
    }
    assert_eq!((there, states.len()), (StateHash::default(), 0));
}

#[test]
fn two_replicas_compute_the_same_state() {
    let both = [object("ada", "u", "1"), object("bob", "v", "2")];
    let (one, other) = (Live::new("e".into()), Live::new("f".into()));
    for object in &both {
        one.put(object, &kind());
    }
    for object in both.iter().rev() {
        other.put(object, &kind());
    }
    assert_eq!(known(&one), known(&other));
    one.put(&object("ada", "u", "3"), &kind());
    assert_ne!(known(&one), known(&other));
}

#[test]
fn backlog_of_changes_is_limited() {
    let (live, kind) = (Live::new("e".into()), kind());
    let mut object = object("ada", "u", "");
    for version in 0..=BACKLOG {
        object.metadata.resource_version = Some(version.to_string());
        live.put(&object, &kind);
    }
    let backlog = live.start(true).backlog;
    assert_eq!(
        (backlog.len(), backlog[0].action),
        (BACKLOG, Action::Modified),
        "the first is forgotten"
    );
}

#[test]
fn resources_of_an_environment_in_deletion_stay_visible() {
    let live = Live::new("e".into());
    let mut going = object("ada", "u", "1");
    going.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T10:00:00Z")).unwrap());
    live.put(&going, &kind());
    let key = key(&kind(), &going);
    let part = Part {
        slot: "instance".into(),
        kind: "Instance".into(),
        name: None,
        external_name: None,
        ready: false,
        since: String::new(),
        reason: Some("Deleting".into()),
        message: None,
        cause: None,
    };
    let left = DeletionProgress { parts: vec![part.clone()], count: 2, of: 3 };
    live.show_deletion_progress(&key, "u", left.clone());
    live.show_deletion_progress(&key, "u", left);
    going.metadata.resource_version = Some("2".into());
    live.put(&going, &kind());
    assert_eq!(told(&live, 1).len(), 2, "an equal list is reported once");
    let view = live.get(&key).unwrap().view.clone();
    assert_eq!((view.parts, view.progress.as_str()), (vec![part], "1/3"));
    assert_eq!(
        view.message,
        "is being deleted: 2 of 3 resources are left; the portal does not see 1 of them"
    );
}

#[test]
fn interruption_counts_only_while_all_watches_are_interrupted() {
    let live = Live::new("e".into());
    assert_eq!(live.unseen(), Duration::ZERO, "no kind is watched");
    live.watching(["A.g", "B.g"].map(str::to_owned).into());
    live.is_interrupted("A.g");
    assert_eq!(live.unseen(), Duration::ZERO, "the other watch works");
    live.is_interrupted("B.g");
    assert!(live.unseen() > Duration::ZERO);
    live.has_synced("A.g");
    assert_eq!(live.unseen(), Duration::ZERO);
    live.is_interrupted("A.g");
    live.watching(BTreeSet::from(["C.g".to_owned()]));
    assert_eq!(live.unseen(), Duration::ZERO, "an unwatched kind does not count");
}

#[test]
fn store_is_unavailable_until_all_watches_have_synced() {
    let live = Live::new("e".into());
    let status = |live: &Live| live.seen_whole().map_err(|problem| problem.status());
    assert_eq!(
        status(&live),
        Err(StatusCode::SERVICE_UNAVAILABLE),
        "the watched kinds are unknown"
    );
    live.watching(["A.g", "B.g"].map(str::to_owned).into());
    live.has_synced("A.g");
    assert_eq!(status(&live), Err(StatusCode::SERVICE_UNAVAILABLE), "one is missing");
    live.has_synced("B.g");
    assert_eq!(status(&live), Ok(()));
    live.watching(["A.g", "B.g", "C.g"].map(str::to_owned).into());
    assert_eq!(status(&live), Ok(()), "a later kind does not change this");

    let empty = Live::new("e".into());
    empty.watching(BTreeSet::new());
    assert_eq!(status(&empty), Ok(()), "a cluster without kinds is complete");
}
