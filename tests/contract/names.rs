//! Names: each one its service takes, no two environments share one.

use std::collections::{BTreeMap, BTreeSet};

use function_paved_road::apis::Flavour;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::generate;
use crate::support::world::{self, Mood, World};

proptest! {
    #![proptest_config(generate::config())]

    #[test]
    fn names_are_valid_and_never_shared(
        world in generate::beginning(), (one, two) in (xr_name(), xr_name()), uids in (uid(), uid()), same in select(vec![(true, false), (false, true), (false, false)]),
    ) {
        // Five characters of the uid tell environments of one name apart, names those of one uid.
        let (same_name, same_uid) = same;
        if (!same_name && one == two) || (!same_uid && uids.0[..5] == uids.1[..5]) {
            return Ok(());
        }
        let two = if same_name { &one } else { &two };
        let uid = if same_uid { &uids.0 } else { &uids.1 };
        let (first, second) = (names(called(&world, &one, &uids.0)), names(called(&world, two, uid)));
        for (kind, name) in first.iter().chain(&second) {
            prop_assert!(is_valid(kind, name), "{kind}: {name}");
        }
        let shared: Vec<_> = first.intersection(&second).filter(|(kind, _)| !lives_in_another(kind)).collect();
        prop_assert!(shared.is_empty(), "{one} and {two} share {shared:?}");
    }
}

/// The same environment under another name.
fn called(world: &World, name: &str, uid: &str) -> World {
    let mut world = world.clone();
    world.xr["metadata"]["name"] = json!(name);
    world.xr["metadata"]["uid"] = json!(uid);
    world
}

/// Every name that an environment takes, by what it is a name of.
fn names(mut world: World) -> BTreeSet<(String, String)> {
    world.reconcile(|_| Mood::Ready);
    let namespaced = world.flavour == Flavour::Namespaced;
    let all = world::desired(&world.answer());
    all.into_values().flat_map(|object| names_of(&object.into(), namespaced)).collect()
}

fn names_of(object: &Value, namespaced: bool) -> Vec<(String, String)> {
    let kind = object["kind"].as_str().unwrap();
    // A namespaced composite's own Secret has a name that people can know; its name is taken in one namespace only.
    let fixed = namespaced && kind == "Secret";
    let found = [
        (kind.to_owned(), &object["metadata"]["annotations"]["crossplane.io/external-name"]),
        (kind.to_owned(), &object["spec"]["forProvider"]["name"]),
        ("object".to_owned(), if fixed { &Value::Null } else { &object["metadata"]["name"] }),
        ("secret".to_owned(), &object["spec"]["writeConnectionSecretToRef"]["name"]),
    ];
    found.into_iter().filter_map(|(what, name)| Some((what, name.as_str()?.to_owned()))).collect()
}

/// A database and its user live in a server of their own.
fn lives_in_another(kind: &str) -> bool {
    ["Database", "User"].contains(&kind)
}

/// What each service takes, from its documentation.
fn is_valid(kind: &str, name: &str) -> bool {
    let length = |range: std::ops::RangeInclusive<usize>| range.contains(&name.len());
    let of =
        |more: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c));
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let begins_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    match kind {
        "object" | "secret" => {
            let label = |label: &str| ends(label.chars().next()) && ends(label.chars().last());
            length(1..=253) && of("-.") && name.split('.').all(label)
        }
        "Cluster" | "NodePool" => {
            length(1..=40) && of("-") && begins_with_letter && ends(name.chars().last())
        }
        "DatabaseInstance" => length(1..=80) && of("-") && begins_with_letter && ends(name.chars().last()),
        "Bucket" => {
            let reserved = ["google", "g00gle", "go0gle", "g0ogle"].iter().any(|word| name.contains(word));
            let edges = ends(name.chars().next()) && ends(name.chars().last());
            length(3..=63) && of("-") && edges && !name.starts_with("goog") && !reserved
        }
        "Role" | "InstanceProfile" => length(1..=64) && of("-"),
        "SecurityGroup" => length(1..=255) && of("-") && !name.starts_with("sg-"),
        "Database" | "User" => length(1..=63) && of("_") && begins_with_letter,
        _ => panic!("{kind} is given the name {name}: say here what names its service takes"),
    }
}

/// Every name that Kubernetes lets an XR have, and rather often such as make trouble.
fn xr_name() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("sg".to_owned()),
        Just("goog".to_owned()),
        Just("google".to_owned()),
        Just("g00gle".to_owned()),
        Just("xr".to_owned()),
        Just("x".to_owned()),
        "[0-9]{1,3}",
        "[a-z]{1,30}",
        "[a-z0-9]{1,63}",
    ];
    let separator = prop_oneof![4 => Just("-"), 2 => Just("."), 1 => Just("--"), 1 => Just("")];
    let words = proptest::collection::vec((word, separator), 1..6);
    let name = words.prop_map(|words| {
        words.into_iter().flat_map(|(word, separator)| [word, separator.to_owned()]).collect::<String>()
    });
    name.prop_map(|mut name| {
        name.truncate(63);
        name.trim_end_matches(['-', '.']).to_owned()
    })
}

fn uid() -> impl Strategy<Value = String> {
    any::<u128>().prop_map(|bits| {
        let hex = format!("{bits:032x}");
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    })
}

#[test]
fn names_that_are_cut_or_cleaned_alike_stay_apart() {
    let uid = "5f0c9a6e-4c1d-4b7e-9a53-0d8a4f6b2c10";
    let long = "a".repeat(60);
    let alike =
        ["a.b", "a-b", "a--b", &format!("{long}-b"), &format!("{long}-c"), "google", "goog-le", "1", "x1"];
    for world in generate::BEGINNINGS.iter() {
        let mut owner = BTreeMap::new();
        for name in alike {
            for taken in
                names(called(world, name, uid)).into_iter().filter(|(kind, _)| !lives_in_another(kind))
            {
                assert_eq!(
                    owner.insert(taken.clone(), name).filter(|other| *other != name),
                    None,
                    "{taken:?} of {name}"
                );
            }
        }
    }
}
