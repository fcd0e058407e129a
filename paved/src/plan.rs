//! A plan: the effects of `apply`, `delete` or `stop`, and a hash that confirms them.
//!
//! A plan never has a secret. It shows only values of closed schemas, which leave no room for a secret. See
//! [`difference`].

mod difference;

use function_paved_road::status::{Deleted, Kept};
use kube::api::DynamicObject;
use paved_client::cluster::{Cluster, Kind};
use paved_client::environment::{Environment, Price};
use paved_client::owner;
use paved_client::restart::Restart;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Console;
use crate::cli::{HASH_LENGTH, PlanFormat, Planning};
use crate::documents::{self, Format};
use crate::failure::Failure;
use crate::style::{BOLD, one_line};
pub(crate) use difference::{Difference, differences};

/// The version of the JSON form.
const VERSION: u32 = 1;

/// How often a confirmed step is tried again after a write that leaves the plan unchanged.
pub(crate) const TRIES: usize = 5;

/// The effect on an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Change {
    Create,
    Update,
    None,
    Delete,
    Stop,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "will be created",
            Self::Update => "will be changed",
            Self::None => "does not change",
            Self::Delete => "will be deleted",
            Self::Stop => "will be stopped",
        }
    }
}

/// The effects on one environment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    kind: String,
    group: String,
    namespace: String,
    name: String,
    change: Change,
    diff: Vec<Difference>,
    price: Prices,
    restarts: Vec<Effect>,
    resources: Option<Resources>,
    deletions: Vec<Deletion>,
    keeps: Vec<Keep>,
    notes: Vec<String>,
    /// All that the plan depends on, and that it does not show.
    #[serde(skip)]
    basis: Value,
}

/// The estimated prices before and after.
#[derive(Clone, Debug, Default, Serialize)]
struct Prices {
    before: Option<Estimate>,
    after: Option<Estimate>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Estimate {
    #[serde(rename = "hourlyUSD")]
    hourly: String,
    #[serde(rename = "stoppedHourlyUSD")]
    stopped: Option<String>,
    as_of: Option<String>,
}

impl From<&Price> for Estimate {
    fn from(price: &Price) -> Self {
        let Price { hourly, stopped_hourly, as_of } = price.clone();
        Self { hourly, stopped: stopped_hourly, as_of }
    }
}

#[derive(Clone, Debug, Serialize)]
struct Effect {
    field: &'static str,
    effect: &'static str,
}

/// The slots of the composed resources that change.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Resources {
    pub(crate) created: Vec<String>,
    pub(crate) changed: Vec<String>,
    pub(crate) deleted: Vec<String>,
}

/// A resource that is deleted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Deletion {
    slot: String,
    kind: String,
    name: Option<String>,
    has_data: bool,
}

/// A resource that stays, and is billed.
#[derive(Clone, Debug, Serialize)]
struct Keep {
    slot: String,
    kind: String,
    name: Option<String>,
    until: Option<String>,
}

impl Item {
    /// An environment with an effect. `object` is the existing object, or the planned one.
    pub(crate) fn new(kind: &Kind, object: &DynamicObject, change: Change) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            kind: kind.name().to_owned(),
            group: kind.resource.group.clone(),
            namespace: text(&object.metadata.namespace),
            name: text(&object.metadata.name),
            change,
            diff: Vec::new(),
            price: Prices::default(),
            restarts: Vec::new(),
            resources: None,
            deletions: Vec::new(),
            keeps: Vec::new(),
            notes: Vec::new(),
            basis: Value::Null,
        }
    }

    pub(crate) fn with_diff(self, diff: Vec<Difference>) -> Self {
        Self { diff, ..self }
    }

    pub(crate) fn with_prices(self, before: Option<&Price>, after: Option<&Price>) -> Self {
        let price = Prices { before: before.map(Into::into), after: after.map(Into::into) };
        Self { price, ..self }
    }

    pub(crate) fn with_restarts(self, all: &[Restart]) -> Self {
        let effect = |one: &Restart| Effect { field: one.field, effect: one.effect };
        Self { restarts: all.iter().map(effect).collect(), ..self }
    }

    pub(crate) fn with_resources(self, resources: Option<Resources>) -> Self {
        Self { resources, ..self }
    }

    /// The resources that are deleted and kept.
    pub(crate) fn with_deletions(self, deleted: &[Deleted], kept: &[Kept]) -> Self {
        let deletion = |one: &Deleted| Deletion {
            slot: one.slot.clone(),
            kind: one.kind.clone(),
            name: one.name.clone(),
            has_data: one.has_data,
        };
        let keep = |one: &Kept| Keep {
            slot: one.slot.clone(),
            kind: one.kind.clone(),
            name: one.name.clone(),
            until: one.until.clone(),
        };
        let deletions = deleted.iter().map(deletion).collect();
        Self { deletions, keeps: kept.iter().map(keep).collect(), ..self }
    }

    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.notes.push(note.to_owned());
        self
    }

    /// Records all that the plan depends on.
    pub(crate) fn based_on(self, basis: Value) -> Self {
        Self { basis, ..self }
    }

    fn title(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// The lines about prices, restarts and deletions.
    pub(crate) fn effects(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.price.line().into_iter().collect();
        lines.extend(
            self.restarts.iter().map(|one| format!("restart: {} ({})", one.effect, one.field)),
        );
        let named = |slot: &str, kind: &str, name: &Option<String>| match name {
            Some(name) => format!("{slot} ({kind} {name})"),
            None => format!("{slot} ({kind})"),
        };
        let deleted = |with_data: bool| {
            let all = self.deletions.iter().filter(|one| one.has_data == with_data);
            all.map(|one| named(&one.slot, &one.kind, &one.name)).collect::<Vec<_>>().join(", ")
        };
        for (words, all) in [("deletes, with all data", deleted(true)), ("deletes", deleted(false))]
        {
            lines.extend((!all.is_empty()).then(|| format!("{words}: {all}")));
        }
        let keep = |one: &Keep| {
            let until = one.until.as_ref().map(|until| format!(", until {until}"));
            named(&one.slot, &one.kind, &one.name) + &until.unwrap_or_default()
        };
        let kept: Vec<String> = self.keeps.iter().map(keep).collect();
        lines.extend((!kept.is_empty()).then(|| format!("kept, and billed: {}", kept.join(", "))));
        lines
    }
}

impl Prices {
    /// `price: 0.526 → 1.212 USD per hour (estimate)`. `None` if no price is known.
    fn line(&self) -> Option<String> {
        let Self { before, after } = self;
        let said = |price: &Estimate| {
            let stopped = price.stopped.as_ref();
            let stopped = stopped.map(|usd| format!(", {usd} while stopped")).unwrap_or_default();
            format!("{} USD per hour{stopped} (estimate)", price.hourly)
        };
        match (before, after) {
            (Some(before), Some(after)) if before.hourly != after.hourly => {
                Some(format!("price: {} → {}", before.hourly, said(after)))
            }
            (_, Some(price)) | (Some(price), None) => Some(format!("price: {}", said(price))),
            (None, None) => None,
        }
    }
}

/// The effects of a command.
pub(crate) struct Plan {
    action: &'static str,
    server: String,
    items: Vec<Item>,
}

impl Plan {
    pub(crate) fn new(action: &'static str, cluster: &Cluster, items: Vec<Item>) -> Self {
        Self { action, server: cluster.server.clone(), items }
    }

    /// The hash of the plan and of all that it depends on.
    pub(crate) fn hash(&self) -> String {
        let items = self.items.iter().map(|item| json!([item, item.basis]).to_string());
        let texts: Vec<String> =
            [self.action.to_owned(), self.server.clone()].into_iter().chain(items).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        owner::hash(&texts, HASH_LENGTH / 2)
    }

    /// Fails if the confirmed hash is another one.
    pub(crate) fn check(&self, confirmed: &str) -> Result<(), Failure> {
        if self.hash() == confirmed { Ok(()) } else { Err(stale("nothing was changed")) }
    }

    /// Prints the plan.
    pub(crate) fn print(
        &self,
        planning: &Planning,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let hash = self.hash();
        if planning.output == Some(PlanFormat::Json) {
            let Self { action, server, items } = self;
            let plan = json!({"version": VERSION, "action": action, "server": server,
                "environments": items, "hash": hash});
            return documents::print(&plan, Format::Json, console);
        }
        for item in &self.items {
            writeln!(console.out, "{BOLD}{}{BOLD:#} {}", item.title(), item.change.word())?;
            for difference in &item.diff {
                writeln!(console.out, "  {}", one_line(&difference.to_string()))?;
            }
            let resources = item.resources.iter().flat_map(Resources::lines);
            for line in item.effects().into_iter().chain(resources).chain(item.notes.clone()) {
                writeln!(console.out, "  {line}")?;
            }
        }
        writeln!(console.out, "Nothing was changed. To act, replace --plan by:")?;
        writeln!(console.out, "  --confirm {hash}")?;
        Ok(())
    }
}

impl Resources {
    fn lines(&self) -> Vec<String> {
        let Self { created, changed, deleted } = self;
        [("creates", created), ("changes", changed), ("removes", deleted)]
            .into_iter()
            .filter(|(_, slots)| !slots.is_empty())
            .map(|(word, slots)| format!("{word} the resources: {}", slots.join(", ")))
            .collect()
    }
}

/// The failure of a plan that is not true any more. `told` is the state of the cluster.
pub(crate) fn stale(told: &str) -> Failure {
    Failure::Stale(format!(
        "something has changed since this plan was made, so {told}: make a new plan with --plan"
    ))
}

/// The part of an object that a plan depends on. Providers and Crossplane write the rest at any
/// time.
pub(crate) fn state(object: &DynamicObject) -> Value {
    let metadata = &object.metadata;
    let spec = &object.data["spec"];
    let seen = Environment::from_object(object);
    json!({
        "uid": metadata.uid,
        "isDeleting": metadata.deletion_timestamp.is_some(),
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "spec": spec,
        "power": object.data["status"]["power"],
        "isStopped": seen.lifecycle.is_some_and(|lifecycle| lifecycle.stopped_at.is_some()),
    })
}

/// Reads an object again, after another client wrote it. `None` if the plan is not true any more.
pub(crate) async fn unchanged(
    cluster: &Cluster,
    kind: &Kind,
    planned: &DynamicObject,
) -> Result<Option<DynamicObject>, Failure> {
    let metadata = &planned.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let api = kind.api(&cluster.client, metadata.namespace.as_deref());
    let now = api.get_opt(name).await.map_err(|error| {
        let title = Environment::from_object(planned).title();
        cluster.explain(&error, &format!("read {title}"))
    })?;
    Ok(now.filter(|now| state(now) == state(planned)))
}
