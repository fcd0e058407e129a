//! Names: each is valid for its service, and no two environments share one.

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
        // Five characters of the uid distinguish environments of one name. Names distinguish
        // environments with the same five characters.
        let (same_name, same_uid) = same;
        if (!same_name && one == two) || (!same_uid && uids.0[..5] == uids.1[..5]) {
            return Ok(());
        }
        let two = if same_name { &one } else { &two };
        let uid = if same_uid { &uids.0 } else { &uids.1 };
        let mut other = called(&world, two, uid);
        if same_name && world.flavour == Flavour::Namespaced {
            other.xr["metadata"]["namespace"] = json!("another-team");
        }
        let (first, second) = (names(called(&world, &one, &uids.0)), names(other));
        for taken in first.iter().chain(&second) {
            prop_assert!(is_valid(&taken.what, &taken.name), "{taken:?}");
        }
        // Names in the user's own namespace are known to users. Two claims of one name cannot exist
        // there at once.
        let users = world.xr["spec"]["claimRef"]["namespace"].as_str();
        let free = |taken: &&Taken| {
            taken.place.is_none()
                || same_name && users.is_some() && taken.place.as_deref() == users && taken.readable
                || same_uid && is_told_by_uid(&taken.name, uid)
        };
        let shared: Vec<_> = first.intersection(&second).filter(|taken| !free(taken)).collect();
        prop_assert!(shared.is_empty(), "{one} and {two} share {shared:?}");
    }
}

proptest! {
    #![proptest_config(generate::config())]

    /// Crossplane applies objects with force, and deletes them with the environment.
    #[test]
    fn object_in_the_users_namespace_has_the_uid_in_its_name_or_is_looked_up(
        mut world in generate::beginning(),
    ) {
        let Some(namespace) = world.xr["metadata"]["namespace"].as_str().map(str::to_owned) else {
            return Ok(());
        };
        let mut asked = BTreeSet::new();
        let mut composed = BTreeSet::new();
        for _ in 0..8 {
            let answer = world.reconcile(|_| Mood::Ready);
            asked.extend(answer.requirements.iter().flat_map(|all| all.resources.keys().cloned()));
            let all = world::desired(&answer).into_values().map(Value::from);
            let native = all.filter(|object| object["spec"].get("forProvider").is_none());
            composed.extend(native.filter_map(|object| {
                let name = object["metadata"]["name"].as_str()?;
                Some((object["kind"].as_str()?.to_owned(), name.to_owned()))
            }));
        }
        let uid = format!("-{}", &world.xr["metadata"]["uid"].as_str().unwrap()[..5]);
        for (kind, name) in composed.iter().filter(|(_, name)| !name.ends_with(&uid)) {
            let lookup = format!("{kind}/{namespace}/{name}");
            prop_assert!(asked.contains(&lookup), "{lookup} is not among {asked:?}");
        }
    }
}

/// Whether eight characters of the uid make a name unique, even without the XR's name. No two XRs
/// have the same uid.
fn is_told_by_uid(name: &str, uid: &str) -> bool {
    name.ends_with(&uid[..8])
}

/// A name that an environment takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    /// The kind of the name: service and kind, for example `ec2 Instance`, or `object` or `secret`.
    what: String,
    /// The scope in which the name must be unique: a namespace, or the whole world if empty.
    /// `None`: the scope is a server or a cluster of this environment alone.
    place: Option<String>,
    name: String,
    /// Whether it is a Kubernetes name that users can know, without a part of the uid.
    readable: bool,
}

/// The same environment with another name, which its claim also has.
fn called(world: &World, name: &str, uid: &str) -> World {
    let mut world = world.clone();
    world.xr["metadata"]["name"] = json!(name);
    world.xr["metadata"]["uid"] = json!(uid);
    if world.flavour == Flavour::Claims {
        world.xr["metadata"]["labels"]["crossplane.io/claim-name"] = json!(name);
        world.xr["spec"]["claimRef"]["name"] = json!(name);
    }
    world
}

/// All names that an environment takes.
fn names(world: World) -> BTreeSet<Taken> {
    let world = world.settle(|_| Mood::Ready);
    let namespace = world.xr["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let all = world::desired(&world.answer());
    let configs: BTreeSet<String> = all
        .values()
        .filter(|object| object["kind"] == "ProviderConfig")
        .filter_map(|config| Some(config["metadata"]["name"].as_str()?.to_owned()))
        .collect();
    all.into_values().flat_map(|object| names_of(&object.into(), &namespace, &configs)).collect()
}

/// The names that a resource takes. `namespace` is that of the XR, and `configs` has its composed
/// provider configs.
fn names_of(object: &Value, namespace: &str, configs: &BTreeSet<String>) -> Vec<Taken> {
    let (service, kind) = (service(object), object["kind"].as_str().unwrap());
    let is_managed = object["spec"].get("forProvider").is_some();
    let own = &object["metadata"];
    let manifest = &object["spec"]["forProvider"]["manifest"];
    let secret = &object["spec"]["writeConnectionSecretToRef"];
    let mut found = Vec::new();
    let mut take = |what: String, place: Option<String>, name: &Value, readable: bool| {
        let name = name.as_str().map(str::to_owned);
        found.extend(name.map(|name| Taken { what, place, name, readable }));
    };
    let object_kind = if is_managed { "object".to_owned() } else { format!("{service} {kind}") };
    take(object_kind, Some(namespace.to_owned()), &own["name"], !is_managed);
    let of_the_environment =
        !["", "crossplane-system"].contains(&secret["namespace"].as_str().unwrap_or_default());
    let secrets = secret["namespace"].as_str().unwrap_or(namespace).to_owned();
    take("secret".to_owned(), Some(secrets), &secret["name"], of_the_environment);
    let external = &own["annotations"]["crossplane.io/external-name"];
    let (service, place) = (format!("{service} {kind}"), place_of(object, configs));
    take(service.clone(), place.clone(), external, false);
    take(service, place.clone(), &object["spec"]["forProvider"]["name"], false);
    let wrapped =
        format!("{} {}", self::service(manifest), manifest["kind"].as_str().unwrap_or_default());
    take(wrapped, place, &manifest["metadata"]["name"], true);
    for ingress in [object, manifest].into_iter().filter(|object| object["kind"] == "Ingress") {
        let everywhere = Some(String::new());
        take("host".to_owned(), everywhere, &ingress["spec"]["rules"][0]["host"], false);
    }
    found
}

/// The first label of a kind's group: `ec2`, `postgresql`, `apps`. Empty for Kubernetes' core
/// group.
fn service(object: &Value) -> &str {
    crossplane::api_version::group_of(object).split('.').next().unwrap_or_default()
}

/// The scope in which an external name, or the name of a wrapped object, must be unique.
fn place_of(object: &Value, configs: &BTreeSet<String>) -> Option<String> {
    let params = &object["spec"]["forProvider"];
    match (service(object), object["kind"].as_str().unwrap()) {
        ("sql", "Database" | "User") | ("eks", "NodeGroup") => None,
        ("helm" | "kubernetes", "Release" | "Object") => {
            let config = object["spec"]["providerConfigRef"]["name"].as_str().unwrap_or_default();
            let inner = params["namespace"]
                .as_str()
                .or(params["manifest"]["metadata"]["namespace"].as_str());
            (!configs.contains(config)).then(|| inner.unwrap_or_default().to_owned())
        }
        _ => Some(String::new()),
    }
}

/// The rules of each service, from its documentation.
fn is_valid(what: &str, name: &str) -> bool {
    let length = |range: std::ops::RangeInclusive<usize>| range.contains(&name.len());
    let of = |more: &str| {
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c))
    };
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let edges = ends(name.chars().next()) && ends(name.chars().last());
    let begins_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    let subdomain = || {
        let label = |label: &str| ends(label.chars().next()) && ends(label.chars().last());
        length(1..=253) && of("-.") && name.split('.').all(label)
    };
    let of_words = |more: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
    match what {
        "container Cluster" | "container NodePool" => {
            length(1..=40) && of("-") && begins_with_letter && ends(name.chars().last())
        }
        "sql DatabaseInstance" => {
            length(1..=80) && of("-") && begins_with_letter && ends(name.chars().last())
        }
        "storage Bucket" => {
            let reserved =
                ["google", "g00gle", "go0gle", "g0ogle"].iter().any(|word| name.contains(word));
            length(3..=63) && of("-") && edges && !name.starts_with("goog") && !reserved
        }
        "s3 Bucket" => {
            let reserved =
                ["xn--", "sthree-", "amzn-s3-demo-"].iter().any(|word| name.starts_with(word))
                    || ["-s3alias", "--ol-s3", "--x-s3"].iter().any(|word| name.ends_with(word));
            length(3..=63) && of("-") && edges && !reserved
        }
        "iam Role" | "iam RolePolicy" | "iam InstanceProfile" => length(1..=64) && of("-"),
        "ec2 SecurityGroup" => length(1..=255) && of("-") && !name.starts_with("sg-"),
        "sql Database" | "sql User" => length(1..=63) && of("_") && begins_with_letter,
        // The provider quotes it, so any letter is allowed. PostgreSQL cuts longer names.
        "postgresql Database" | "postgresql Role" => {
            length(1..=63) && of("-_") && begins_with_letter && !name.starts_with("pg_")
        }
        "rds Instance" => {
            length(1..=63)
                && of("-")
                && begins_with_letter
                && !name.contains("--")
                && !name.ends_with('-')
        }
        "cloudfront Function" => length(1..=64) && of_words("-_"),
        "cloudfront OriginAccessControl" => length(1..=64) && of_words("-_."),
        "eks Cluster" => {
            length(1..=100)
                && of_words("-_")
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        }
        "eks NodeGroup" => {
            length(1..=63)
                && of_words("-_")
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        }
        "containerservice KubernetesCluster" => {
            let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            length(1..=63)
                && of_words("-_")
                && edge(name.chars().next())
                && edge(name.chars().last())
        }
        "helm Release" => length(1..=53) && of("-") && edges,
        // An RFC 1035 label. Newer clusters also accept a digit at the start.
        " Service" => length(1..=63) && of("-") && begins_with_letter && edges,
        " Namespace" => length(1..=63) && of("-") && edges,
        // The subdomain is a separate label.
        "host" => length(1..=253) && subdomain() && name.split('.').all(|label| label.len() <= 63),
        "object"
        | "secret"
        | " Secret"
        | " ConfigMap"
        | " ServiceAccount"
        | "apps Deployment"
        | "networking Ingress"
        | "argoproj Application"
        | "operator KnativeServing"
        | "storage StorageClass" => subdomain(),
        // Providers write it into a label of resources that use it.
        "helm ProviderConfig" | "kubernetes ProviderConfig" => subdomain() && length(1..=63),
        _ => panic!("no rule for the name {name} of {what}: add the rule of its service"),
    }
}

/// Valid names of XRs, often with parts that cause problems.
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
        words
            .into_iter()
            .flat_map(|(word, separator)| [word, separator.to_owned()])
            .collect::<String>()
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
fn names_with_the_same_prefix_or_cleaned_form_stay_distinct() {
    let uid = "5f0c9a6e-4c1d-4b7e-9a53-0d8a4f6b2c10";
    let long = "a".repeat(60);
    let alike = [
        "a.b",
        "a-b",
        "a--b",
        &format!("{long}-b"),
        &format!("{long}-c"),
        "google",
        "goog-le",
        "1",
        "x1",
    ];
    for world in generate::BEGINNINGS.iter() {
        let mut owner = BTreeMap::new();
        for name in alike {
            let alone = |taken: &Taken| taken.place.is_some() && !is_told_by_uid(&taken.name, uid);
            for taken in names(called(world, name, uid)).into_iter().filter(alone) {
                assert_eq!(
                    owner.insert(taken.clone(), name).filter(|other| *other != name),
                    None,
                    "{taken:?} of {name}"
                );
            }
        }
    }
}

/// Users choose the names of composites: by the name in the namespaced API, by `spec.resourceRef`
/// in the claims API.
#[test]
fn composites_of_one_name_share_no_name_outside_their_namespace() {
    let uids = ["5f0c9a6e-4c1d-4b7e-9a53-0d8a4f6b2c10", "7e9b51d3-0c2a-4f68-b7d4-5a16c83f92e0"];
    for world in generate::BEGINNINGS.iter() {
        let namespace = match world.flavour {
            Flavour::Claims => &world.xr["spec"]["claimRef"]["namespace"],
            Flavour::Namespaced => &world.xr["metadata"]["namespace"],
        };
        let outside = |uid: &str| -> BTreeSet<Taken> {
            let all = names(called(world, "team-payments", uid)).into_iter();
            all.filter(|taken| {
                taken.place.is_some() && taken.place.as_deref() != namespace.as_str()
            })
            .collect()
        };
        let [first, second] = uids.map(outside);
        let shared: Vec<_> = first.intersection(&second).collect();
        assert!(
            shared.is_empty(),
            "{} in {:?}: {shared:?}",
            world.api().info().name,
            world.flavour
        );
    }
}

#[test]
fn namespaces_and_hosts_carry_a_part_of_the_uid() {
    let uid = "5f0c9a6e-4c1d-4b7e-9a53-0d8a4f6b2c10";
    let of = |api: &str, flavour: Flavour| {
        let is_it = |world: &&World| world.api().info().name == api && world.flavour == flavour;
        let world = generate::BEGINNINGS.iter().find(is_it).unwrap();
        names(called(world, "login", uid))
            .into_iter()
            .map(|taken| (taken.what, taken.name))
            .collect::<Vec<_>>()
    };
    for (api, flavour, what, name) in [
        ("virtual-environment", Flavour::Claims, " Namespace", "login-5f0c9"),
        ("virtual-environment", Flavour::Namespaced, " Namespace", "team-shop-login-5f0c9"),
        ("unified-environment", Flavour::Claims, " Namespace", "login-5f0c9-environment"),
        ("unified-environment", Flavour::Claims, "host", "login-5f0c9.apps.acme.io"),
        ("unified-environment", Flavour::Namespaced, "host", "login-5f0c9.apps.acme.io"),
    ] {
        let found = of(api, flavour);
        assert!(
            found.contains(&(what.to_owned(), name.to_owned())),
            "{api} {flavour:?}: {found:?}"
        );
    }
}
