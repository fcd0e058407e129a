//! Tests of the engine with a small API: a disk, a machine that needs it, and resources of single
//! tests.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod condition;
mod deletion;
mod envelope;
mod look;
mod namespace;
mod native;
mod objects;
mod ordered_removal;
mod presence;
mod preserved;
mod revision;
mod secret;
mod stalled;
mod status_fields;
mod tags;
mod usages;
mod wrapped;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Composer;
use crate::error::Error;
use crate::models::{self, Kind};
use crate::observe::{ApiFacts, Composite, OWNED_LABEL, Observation, Resource};
use crate::plan::Plan;
use crate::power::Composed;
use crate::settings::Common;
use crate::status::{Addition, Answer, Condition, PROVISIONED};
use crate::value::Object;

/// A minimal managed resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Disk {
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<Machine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Machine {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
struct DiskStatus {
    id: Option<String>,
    count: Option<i64>,
}

impl models::Managed for Disk {
    const KIND: Kind = Kind::aws("ec2", "Disk").versions("v1beta2", "v1beta1");
    type Status = DiskStatus;
}

fn disk(region: &str) -> Disk {
    Disk { region: Some(region.to_owned()), ..Disk::default() }
}

/// A composite and its observed resources.
#[derive(Clone)]
pub(super) struct Test {
    pub xr: Value,
    pub details: BTreeMap<String, Vec<u8>>,
    pub observed: Vec<(String, Value, BTreeMap<String, Vec<u8>>)>,
    pub settings: Common,
    pub first_slots: &'static [&'static str],
    /// The objects that Crossplane found, by the names of the requirements.
    pub found: BTreeMap<String, Option<Object>>,
    pub random: u8,
}

/// A claim's composite, with a connection secret.
pub(super) fn legacy() -> Test {
    let free = ["Deployment/team/web", "Secret/team/thing-things", "Service/team/web"];
    let xr = json!({
        "apiVersion": "example.org/v1", "kind": "XThing",
        "metadata": {"name": "thing-x1", "uid": "abcde123-0000"},
        "spec": {
            "claimRef": {"name": "thing", "namespace": "team"},
            "writeConnectionSecretToRef": {"name": "the-uid", "namespace": "vault"},
        },
    });
    Test {
        xr,
        details: BTreeMap::new(),
        observed: Vec::new(),
        settings: Common::default(),
        first_slots: &[],
        found: free.map(|name| (name.to_owned(), None)).into(),
        random: 1,
    }
}

/// A composite of the namespaced API.
fn namespaced() -> Test {
    let xr = json!({
        "apiVersion": "m.example.org/v1", "kind": "Thing",
        "metadata": {"name": "thing", "namespace": "team", "uid": "abcde123-0000"},
        "spec": {"crossplane": {}},
    });
    Test { xr, ..legacy() }
}

impl Test {
    /// Adds an observed resource with our label.
    fn with(mut self, slot: &str, mut object: Value) -> Self {
        object["metadata"]["labels"][OWNED_LABEL] = json!("true");
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!(format!("{slot}-name"));
        }
        self.observed.push((slot.to_owned(), object, BTreeMap::new()));
        self
    }

    /// The composite with the objects that Crossplane found instead of the usual ones.
    pub(super) fn with_found(
        &self,
        found: impl IntoIterator<Item = (String, Option<Value>)>,
    ) -> Self {
        let object = |found: Value| found.as_object().cloned();
        let found = found.into_iter().map(|(name, found)| (name, found.and_then(object)));
        Self { found: found.collect(), ..self.clone() }
    }

    pub(super) fn compose(
        &self,
        api: impl FnOnce(&mut Composer<'_>) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        let (Value::Object(xr), observed) = (self.xr.clone(), self.observed.clone()) else {
            panic!("not an object")
        };
        let resources = observed.into_iter().map(|(slot, object, details)| match object {
            Value::Object(object) => (slot, Resource::new(object, details)),
            _ => panic!("not an object"),
        });
        let observation = Observation {
            xr: Composite::read(xr, self.details.clone())?,
            settings: &self.settings,
            api: ApiFacts {
                name: "things",
                called: "thing".to_owned(),
                first_slots: self.first_slots,
            },
            resources: resources.collect(),
            found: self.found.clone(),
            credentials: Vec::new(),
            now: "2026-11-21T09:00:00Z".parse().unwrap(),
        };
        let mut random = |bytes: &mut [u8]| bytes.fill(self.random);
        let plan = Plan::default();
        let draft = Composer::new(&observation, &plan, &mut random).draft(|cx| {
            api(cx)?;
            Ok(json!({"early": "a", "late": "b"}).as_object().unwrap().clone())
        });
        Ok(Answer::new(Composed::new(draft, plan)?, &[Addition::field("late", 2)]))
    }
}

/// An observed managed resource with these conditions: type, status, reason, message.
fn observed(conditions: &[(&str, &str, &str, &str)]) -> Value {
    let condition = |(kind, status, reason, message): &(&str, &str, &str, &str)| json!({"type": kind, "status": status, "reason": reason, "message": message});
    json!({
        "apiVersion": "ec2.aws.upbound.io/v1beta2", "kind": "Disk", "metadata": {},
        "spec": {"forProvider": {"region": "here"}},
        "status": {"conditions": conditions.iter().map(condition).collect::<Vec<_>>()},
    })
}

fn ready() -> Value {
    observed(&[("Ready", "True", "Available", ""), ("Synced", "True", "ReconcileSuccess", "")])
}

fn object(answer: &Answer, slot: &str) -> Value {
    Value::Object(
        answer.resources.get(slot).unwrap_or_else(|| panic!("{slot} is not composed")).0.clone(),
    )
}

fn slots(answer: &Answer) -> Vec<&str> {
    answer.resources.keys().map(String::as_str).collect()
}

impl Answer {
    /// The condition of a type.
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// The reason of `Provisioned`.
    fn reason(&self) -> &str {
        &self.condition(PROVISIONED).unwrap().reason
    }

    /// The message of `Provisioned`.
    fn message(&self) -> &str {
        &self.condition(PROVISIONED).unwrap().message
    }
}
