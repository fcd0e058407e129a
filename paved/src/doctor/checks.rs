//! What is right and what is wrong, decided from what was read.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::DynamicObject;
use serde_json::Value;

use super::check::Check;
use super::look::{ProviderConfigs, Seen, World};
use super::{crossplane, needs};
use crate::cluster::MARK;
use crate::paint::harmless;

/// Every check of a cluster, in the order in which things are installed.
pub(super) fn all(world: &World) -> Vec<Check> {
    let mut all = vec![crossplane::check(world)];
    if matches!(world.definitions, Seen::NoSuchKind) {
        return all;
    }
    all.extend(packages("Function", &world.functions, &needed_functions(world)));
    all.extend(packages("Provider", &world.providers, &BTreeSet::new()));
    all.extend(needs::check(world));
    all.extend(provider_configs(world));
    all.extend(definitions(world));
    all.extend(settings(world));
    all
}

/// Whether packages of a kind are installed and healthy, and those that are needed are there.
fn packages(kind: &str, seen: &Seen, needed: &BTreeSet<String>) -> Vec<Check> {
    let Seen::All(objects) = seen else {
        return vec![seen.unread(format!("{kind}s"))];
    };
    let mut checks: Vec<Check> = objects
        .iter()
        .map(|object| {
            let name = name(object);
            let what = format!("{kind} {name}");
            let broken = ["Installed", "Healthy"].into_iter().find(|kind| !holds(object, kind));
            match broken {
                None => Check::good(what, version(object)),
                Some(condition) => Check::bad(
                    what,
                    format!("is not {condition}{}", message(object, condition)),
                    &format!("look at `kubectl describe {}.pkg.crossplane.io {name}`", kind.to_lowercase()),
                ),
            }
        })
        .collect();
    let there: BTreeSet<&str> = objects.iter().map(name).collect();
    checks.extend(needed.iter().filter(|name| !there.contains(name.as_str())).map(|name| {
        Check::bad(
            format!("{kind} {name}"),
            "is not installed, and a Composition refers to it",
            "install it, or correct the Composition's functionRef",
        )
    }));
    if checks.is_empty() {
        checks.push(Check::open(format!("{kind}s"), "there are none"));
    }
    checks
}

/// The version of a package: what stands behind its last colon.
fn version(package: &DynamicObject) -> String {
    let text = package.data["spec"]["package"].as_str().unwrap_or_default();
    let tag = text.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'));
    harmless(tag.unwrap_or(text))
}

/// Each XRD of ours: established, offered, and with a Composition to choose.
fn definitions(world: &World) -> Vec<Check> {
    let Seen::All(definitions) = &world.definitions else {
        return vec![match world.kinds.len() {
            _ if matches!(world.definitions, Seen::Failed(_)) => world.definitions.unread("XRDs"),
            0 => Check::bad("Environments", "no kind has the category paved", "install a Configuration"),
            count => Check::good(
                "Environments",
                format!("{count} kinds; their XRDs cannot be seen with your rights"),
            ),
        }];
    };
    let ours: Vec<&DynamicObject> = definitions.iter().filter(|one| is_ours(one)).collect();
    if ours.is_empty() {
        return vec![Check::bad("Environments", "no XRD has the category paved", "install a Configuration")];
    }
    ours.iter().map(|definition| definition_check(definition, world)).collect()
}

fn definition_check(definition: &DynamicObject, world: &World) -> Check {
    let what = format!("XRD {}", name(definition));
    let claims = definition.data["spec"]["claimNames"].is_object();
    let wanted = if claims { &["Established", "Offered"][..] } else { &["Established"] };
    if let Some(condition) = wanted.iter().find(|condition| !holds(definition, condition)) {
        let found = format!("is not {condition}{}", message(definition, condition));
        return Check::bad(what, found, "see `kubectl describe xrd`: another kind may have its names");
    }
    let Seen::All(compositions) = &world.compositions else {
        return match &world.compositions {
            Seen::Hidden => Check::good(what, "its Compositions cannot be seen with your rights"),
            failed => failed.unread(format!("{what}: Compositions")),
        };
    };
    let choices: Vec<&str> = compositions.iter().filter(|one| composes(one, definition)).map(name).collect();
    if choices.is_empty() {
        return Check::bad(what, "has no Composition", "install its Configuration, or apply one of yours");
    }
    let noun = if choices.len() == 1 { "Composition" } else { "Compositions" };
    Check::good(what, format!("{noun} {}", choices.join(", ")))
}

pub(super) fn is_ours(definition: &DynamicObject) -> bool {
    let names = ["claimNames", "names"].map(|names| &definition.data["spec"][names]["categories"]);
    names.iter().filter_map(|categories| categories.as_array()).flatten().any(|one| one == MARK)
}

pub(super) fn composes(composition: &DynamicObject, definition: &DynamicObject) -> bool {
    let of = &composition.data["spec"]["compositeTypeRef"];
    let (spec, version) = (&definition.data["spec"], of["apiVersion"].as_str().unwrap_or_default());
    let group = version.split_once('/').map_or("", |(group, _)| group);
    of["kind"] == spec["names"]["kind"] && spec["group"] == group
}

/// The pipelines' steps of the Compositions of our XRDs.
fn steps(world: &World) -> Vec<&Value> {
    let (Seen::All(definitions), Seen::All(compositions)) = (&world.definitions, &world.compositions) else {
        return Vec::new();
    };
    let ours: Vec<&DynamicObject> = definitions.iter().filter(|one| is_ours(one)).collect();
    let used = compositions.iter().filter(|one| ours.iter().any(|definition| composes(one, definition)));
    used.filter_map(|one| one.data["spec"]["pipeline"].as_array()).flatten().collect()
}

fn needed_functions(world: &World) -> BTreeSet<String> {
    let names = steps(world).into_iter().filter_map(|step| step["functionRef"]["name"].as_str());
    names.map(str::to_owned).collect()
}

/// The EnvironmentConfigs that Compositions take the platform's settings from.
fn settings(world: &World) -> Vec<Check> {
    let named: BTreeSet<&str> =
        steps(world).into_iter().filter_map(|step| step["input"]["settingsFrom"]["name"].as_str()).collect();
    let check = |name: &str| {
        let what = format!("Settings {name}");
        match &world.configs {
            Seen::All(configs) if configs.iter().any(|one| self::name(one) == name) => {
                Check::good(what, "EnvironmentConfig")
            }
            Seen::All(_) => Check::open(
                what,
                "there is no such EnvironmentConfig: the Composition's own input alone counts",
            ),
            unread => unread.unread(what),
        }
    };
    named.into_iter().map(check).collect()
}

/// Of each installed provider that environments go through, the config that Settings name.
fn provider_configs(world: &World) -> Vec<Check> {
    let named = configured(world);
    let check = |kind: &ProviderConfigs| {
        let cloud = cloud(&kind.resource.group)?;
        let wanted = named.get(cloud).map_or("default", String::as_str);
        let what = format!("{}.{}", kind.resource.kind, kind.resource.group);
        Some(match &kind.objects {
            Seen::All(objects) if objects.iter().any(|one| name(one) == wanted) => Check::good(what, wanted),
            Seen::All(_) => Check::open(
                what,
                format!(
                    "there is no {wanted}: environments that need {cloud} will wait; make one, or name another in Settings"
                ),
            ),
            unread => unread.unread(what),
        })
    };
    world.provider_configs.iter().filter_map(check).collect()
}

/// The names of provider configs in Settings: those of the step's input, and over them the EnvironmentConfig's.
fn configured(world: &World) -> BTreeMap<&'static str, String> {
    let mut named = BTreeMap::new();
    let inputs = steps(world).into_iter().map(|step| &step["input"]["providerConfigs"]);
    let configs = match &world.configs {
        Seen::All(configs) => configs.as_slice(),
        _ => &[],
    };
    for section in inputs.chain(configs.iter().map(|one| &one.data["data"]["providerConfigs"])) {
        for cloud in CLOUDS {
            if let Some(name) = section[cloud]["name"].as_str() {
                named.insert(cloud, name.to_owned());
            }
        }
    }
    named
}

/// The keys of `providerConfigs` in Settings.
const CLOUDS: [&str; 6] = ["aws", "azure", "gcp", "helm", "kubernetes", "sql"];

/// Which of them a group of provider configs belongs to: `aws.m.upbound.io` to `aws`.
pub(super) fn cloud(group: &str) -> Option<&'static str> {
    let theirs = group.ends_with(".upbound.io") || group.ends_with(".crossplane.io");
    let mut labels = group.trim_start_matches("postgresql.").split('.');
    let first = labels.next()?;
    let direct = ["m", "upbound", "crossplane"].contains(&labels.next()?);
    CLOUDS.into_iter().find(|cloud| *cloud == first).filter(|_| theirs && direct)
}

pub(super) fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn condition<'o>(object: &'o DynamicObject, kind: &str) -> &'o Value {
    let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

fn holds(object: &DynamicObject, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}

/// A condition's message behind a colon.
fn message(object: &DynamicObject, kind: &str) -> String {
    match condition(object, kind)["message"].as_str() {
        Some(message) if !message.is_empty() => format!(": {}", harmless(message)),
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) mod tests;
