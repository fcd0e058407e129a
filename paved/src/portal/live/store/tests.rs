#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;
use crate::cluster::tests::kinds;
use crate::portal::live::Part;

fn kind() -> Arc<Kind> {
    Arc::new(kinds().called("gpuws").unwrap().remove(0))
}

fn object(name: &str, uid: &str, version: &str) -> DynamicObject {
    let kind = kind();
    serde_json::from_value(json!({"apiVersion": kind.resource.api_version, "kind": kind.name(), "spec": {},
        "metadata": {"name": name, "namespace": "team", "uid": uid, "resourceVersion": version}}))
    .unwrap()
}

fn told(live: &Live, since: u64) -> Vec<(Action, String)> {
    let start = live.start(Some(since));
    assert!(start.snapshot.is_none());
    start.missed.iter().map(|change| (change.action, change.entry.uid.clone())).collect()
}

#[test]
fn what_is_seen_twice_is_told_once() {
    let live = Live::new("e".into());
    for version in ["1", "1", "2", "2"] {
        live.put(&object("ada", "u", version), &kind());
    }
    let both = [(Action::Added, "u".to_owned()), (Action::Modified, "u".to_owned())];
    assert_eq!(told(&live, 0), both);
}

#[test]
fn what_another_version_of_its_kind_shows_is_a_change() {
    let live = Live::new("e".into());
    let mut later = Arc::unwrap_or_clone(kind());
    later.resource.version = "v2".into();
    live.put(&object("ada", "u", "1"), &kind());
    live.put(&object("ada", "u", "1"), &Arc::new(later));
    assert_eq!(told(&live, 1), [(Action::Modified, "u".to_owned())]);
}

#[test]
fn another_of_the_same_name_is_another() {
    let live = Live::new("e".into());
    live.put(&object("ada", "u", "1"), &kind());
    live.put(&object("ada", "v", "2"), &kind());
    let all = [(Action::Deleted, "u".to_owned()), (Action::Added, "v".to_owned())];
    assert_eq!(told(&live, 1), all);
    live.remove(&object("ada", "u", "1"), &kind());
    assert_eq!(live.all().len(), 1, "a late word of the first one does not take the second");
}

#[test]
fn what_went_while_a_watch_was_away_is_told_when_it_is_back() {
    let live = Live::new("e".into());
    live.put(&object("ada", "u", "1"), &kind());
    live.put(&object("bob", "v", "1"), &kind());
    live.keep_only(&kind().full_name(), &BTreeSet::from([key(&kind(), &object("bob", "v", "1"))]));
    assert_eq!(told(&live, 2), [(Action::Deleted, "u".to_owned())]);
    live.keep_only("Other.group", &BTreeSet::new());
    assert_eq!(live.all().len(), 1);
}

#[test]
fn whoever_was_away_too_long_gets_everything_anew() {
    let live = Live::new("e".into());
    for version in 0..=BACKLOG {
        live.put(&object("ada", "u", &version.to_string()), &kind());
    }
    assert!(live.start(Some(0)).snapshot.is_some_and(|all| all.len() == 1));
    assert_eq!(live.start(Some(1)).missed.len(), BACKLOG);
    assert!(live.start(Some(u64::MAX - 1)).snapshot.is_some(), "a number of the future");
    assert!(live.start(None).snapshot.is_some());
}

#[test]
fn what_is_left_stays_shown_while_it_goes() {
    let live = Live::new("e".into());
    let mut going = object("ada", "u", "1");
    going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T10:00:00Z")).unwrap());
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
    };
    let left = Left { parts: vec![part.clone()], count: 2, of: 3 };
    live.show_left(&key, "u", left.clone());
    live.show_left(&key, "u", left);
    going.metadata.resource_version = Some("2".into());
    live.put(&going, &kind());
    assert_eq!(told(&live, 1).len(), 2, "the same twice is told once");
    let view = live.get(&key).unwrap().view().unwrap();
    assert_eq!((view.parts, view.progress.as_str()), (vec![part], "1/3"));
    assert_eq!(view.message, "is being deleted: 2 of 3 parts are left; the portal does not see 1 of them");
}

#[test]
fn nothing_is_seen_while_no_watch_stands() {
    let live = Live::new("e".into());
    assert_eq!(live.unseen(), Duration::ZERO, "nothing is watched");
    live.watching(["A.g", "B.g"].map(str::to_owned).into());
    live.is_interrupted("A.g");
    assert_eq!(live.unseen(), Duration::ZERO, "the other one stands");
    live.is_interrupted("B.g");
    assert!(live.unseen() > Duration::ZERO);
    live.has_synced("A.g");
    assert_eq!(live.unseen(), Duration::ZERO);
    live.is_interrupted("A.g");
    live.watching(BTreeSet::from(["C.g".to_owned()]));
    assert_eq!(live.unseen(), Duration::ZERO, "what is not watched any more is missed by nobody");
}

#[test]
fn nothing_is_told_before_everything_was_seen_once() {
    let live = Live::new("e".into());
    let status = |live: &Live| live.seen_whole().map_err(|problem| problem.status());
    assert_eq!(status(&live), Err(StatusCode::SERVICE_UNAVAILABLE), "nobody has said what is watched");
    live.watching(["A.g", "B.g"].map(str::to_owned).into());
    live.has_synced("A.g");
    assert_eq!(status(&live), Err(StatusCode::SERVICE_UNAVAILABLE), "one is missing");
    live.has_synced("B.g");
    assert_eq!(status(&live), Ok(()));
    live.watching(["A.g", "B.g", "C.g"].map(str::to_owned).into());
    assert_eq!(status(&live), Ok(()), "what is installed later takes nothing back");

    let empty = Live::new("e".into());
    empty.watching(BTreeSet::new());
    assert_eq!(status(&empty), Ok(()), "a cluster without kinds has nothing to show");
}
