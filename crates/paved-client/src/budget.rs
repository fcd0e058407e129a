//! Budgets of namespaces, before an environment is created or changed: the sum of the estimated
//! prices of the environments that the user sees, with the price of the new or changed one.

use std::cmp::Reverse;

use function_paved_road::catalog::gpu::MACHINES;
use function_paved_road::catalog::prices::Usd;
use function_paved_road::error::FieldError;
use function_paved_road::power::PowerState;
use function_paved_road::status::Spending;
use futures::TryStreamExt;
use futures::future::try_join_all;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::{Cluster, Kind, is_denied, pages};
use crate::environment::{Environment, Price};

/// The maximum number of environments that an error names.
const NAMED: usize = 3;

/// The machine type in the document of a GPU workspace, as a JSON pointer.
const MACHINE_TYPE: &str = "/spec/parameters/instanceType";

/// An environment with a price that counts in the sum of its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The kind.
    pub kind: String,
    /// The group of the kind.
    pub group: String,
    /// The name.
    pub name: String,
    /// The owner, if it is known.
    pub owner: Option<String>,
    /// The price of an hour in its present state.
    pub hourly: Usd,
}

impl Holder {
    /// Reads an environment. `None` if it has no price.
    pub fn from_environment(environment: &Environment) -> Option<Self> {
        Some(Self {
            kind: environment.kind.clone(),
            group: environment.group.clone(),
            name: environment.name.clone(),
            owner: environment.owner.clone(),
            hourly: environment.counted_price()?,
        })
    }

    /// Whether a document is about this environment.
    fn is(&self, document: &Value) -> bool {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let group = crossplane::api_version::group(text("/apiVersion"));
        text("/kind") == self.kind && group == self.group && text("/metadata/name") == self.name
    }

    /// Kind, name, owner and price.
    fn named(&self) -> String {
        let Self { kind, name, owner, hourly, .. } = self;
        match owner {
            Some(owner) => format!("{kind} {name} of {owner} ({hourly})"),
            None => format!("{kind} {name} ({hourly})"),
        }
    }
}

/// A new or changed environment.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The document that would be stored.
    pub after: &'a Value,
    /// The existing object.
    pub before: Option<&'a Value>,
}

impl Planned<'_> {
    /// Whether the environment is stopped after the change.
    fn is_stopped(&self) -> bool {
        let wanted = |document: &Value| {
            document.pointer("/spec/lifecycle/power").and_then(Value::as_str) == Some("Stopped")
        };
        let stays = |before: &Value| is_stopped(before) && wanted(before) == wanted(self.after);
        wanted(self.after) || self.before.is_some_and(stays)
    }
}

/// The environments of a namespace that the user sees, with their prices.
#[derive(Clone, Debug)]
pub struct Ledger {
    namespace: String,
    holders: Vec<Holder>,
}

impl Ledger {
    /// The ledger of a namespace with these environments.
    pub fn new(namespace: &str, holders: Vec<Holder>) -> Self {
        Self { namespace: namespace.to_owned(), holders }
    }

    /// Reads the environments of a namespace. Kinds that the user may not list do not count.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn read(cluster: &Cluster, kinds: &[Kind], namespace: &str) -> Result<Self, Failure> {
        let ours = kinds.iter().filter(|kind| kind.paved_api().is_some());
        let holders = try_join_all(ours.map(|kind| listed(cluster, kind, namespace))).await?;
        Ok(Self::new(namespace, holders.concat()))
    }

    /// Compares the sum of all prices with a budget, and counts the environment from then on. An
    /// environment without a price does not count, and is never rejected. A change that does not
    /// raise the price is not rejected either. `price` composes a document with the present
    /// Settings.
    ///
    /// # Errors
    /// The sum is higher than the budget. The message has the sum, the budget, the price that would
    /// fit and the environments with the highest prices.
    pub fn check(
        &mut self,
        budget: Usd,
        planned: Planned<'_>,
        price: &mut dyn FnMut(&Value) -> Option<Price>,
    ) -> Result<(), FieldError> {
        let Planned { after, before } = planned;
        let Some(hourly) = price(after).and_then(|price| counted(&price, planned.is_stopped()))
        else {
            return Ok(());
        };
        let (own, others): (Vec<Holder>, Vec<Holder>) =
            self.holders.iter().cloned().partition(|holder| holder.is(after));
        let sum: Usd = others.iter().map(|holder| holder.hourly).sum();
        let spending = Spending { hourly: sum.plus(hourly), budget };
        let mut earlier = own
            .first()
            .map(|own| own.hourly)
            .into_iter()
            .chain(before.and_then(|before| counted(&price(before)?, is_stopped(before))));
        if spending.is_over() && earlier.all(|earlier| hourly > earlier) {
            let rest = budget.minus(sum);
            let machine = largest_machine(planned, rest, price);
            return Err(self.over(spending, hourly, rest, machine, others));
        }
        self.holders = others;
        self.holders.push(Holder { hourly, ..holder(after) });
        Ok(())
    }

    /// The error of an environment that does not fit.
    fn over(
        &self,
        Spending { hourly: total, budget }: Spending,
        hourly: Usd,
        rest: Usd,
        machine: Option<&str>,
        mut others: Vec<Holder>,
    ) -> FieldError {
        let namespace = &self.namespace;
        let left = match machine {
            _ if rest == Usd::default() => "Nothing is left of the budget".to_owned(),
            Some(machine) => {
                format!("{rest} is left, which is enough for the machine type {machine}")
            }
            None => format!("{rest} is left"),
        };
        others.sort_by_key(|holder| Reverse(holder.hourly));
        let named: Vec<String> = others.iter().take(NAMED).map(Holder::named).collect();
        let highest = match named.join(", ") {
            none if none.is_empty() => none,
            named => format!(". The highest prices: {named}"),
        };
        let message = format!(
            "found {total} USD per hour with {hourly} for this environment; allowed: {budget}, the \
             budget of namespace {namespace}. {left}{highest}"
        );
        FieldError { path: "metadata.namespace".to_owned(), message }
    }
}

/// The environments of a kind that have a price. Empty if the user may not list the kind.
async fn listed(cluster: &Cluster, kind: &Kind, namespace: &str) -> Result<Vec<Holder>, Failure> {
    let read: kube::Result<Vec<_>> =
        pages(cluster, kind, Some(namespace), None).try_collect().await;
    match read {
        Ok(pages) => {
            let environments = pages.iter().flat_map(|page| &page.items);
            let environments = environments.map(Environment::from_object);
            Ok(environments.filter_map(|one| Holder::from_environment(&one)).collect())
        }
        Err(error) if is_denied(&error) => Ok(Vec::new()),
        Err(error) => Err(cluster.explain(&error, &format!("list {}", kind.name()))),
    }
}

/// The environment of a document, without its price.
fn holder(document: &Value) -> Holder {
    let object: Option<DynamicObject> = serde_json::from_value(document.clone()).ok();
    let environment = object.as_ref().map(Environment::from_object);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Holder {
        kind: text(&document["kind"]),
        group: crossplane::api_version::group_of(document).to_owned(),
        name: text(&document["metadata"]["name"]),
        owner: environment.and_then(|environment| environment.owner),
        hourly: Usd::default(),
    }
}

/// Whether an object is stopped.
fn is_stopped(object: &Value) -> bool {
    object["status"]["power"] == "Stopped"
}

/// The price that counts.
fn counted(price: &Price, is_stopped: bool) -> Option<Usd> {
    price.now(is_stopped.then_some(PowerState::Stopped)).parse().ok()
}

/// The most expensive machine type with which a GPU workspace costs at most `rest`. The composition
/// rejects a machine type that Settings do not offer, so this type has no price.
fn largest_machine(
    planned: Planned<'_>,
    rest: Usd,
    price: &mut dyn FnMut(&Value) -> Option<Price>,
) -> Option<&'static str> {
    planned.after.pointer(MACHINE_TYPE)?;
    let mut fitting = Vec::new();
    for machine in MACHINES {
        let mut document = planned.after.clone();
        *document.pointer_mut(MACHINE_TYPE)? = json!(machine.name);
        let hourly = price(&document).and_then(|price| counted(&price, planned.is_stopped()));
        fitting
            .extend(hourly.filter(|hourly| *hourly <= rest).map(|hourly| (hourly, machine.name)));
    }
    fitting.into_iter().max().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::environment::samples::{environment, ready};

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    /// A workspace with this machine type.
    fn workspace(name: &str, machine: &str) -> Value {
        json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
            "metadata": {"name": name, "namespace": "team-vision"},
            "spec": {"parameters": {"owner": "ada", "instanceType": machine}}})
    }

    fn holding(name: &str, owner: Option<&str>, hourly: &str) -> Holder {
        let owner = owner.map(str::to_owned);
        Holder { owner, hourly: usd(hourly), ..holder(&workspace(name, "")) }
    }

    /// Prices of three machine types: 0.5, 1 and 2 dollars, and a tenth while stopped.
    fn price(document: &Value) -> Option<Price> {
        let hourly = match document.pointer(MACHINE_TYPE)?.as_str()? {
            "g4dn.xlarge" => "0.5",
            "g4dn.2xlarge" => "1",
            "g4dn.4xlarge" => "2",
            _ => return None,
        };
        Price::from_status(&json!({"estimatedHourlyUSD": hourly,
            "estimatedStoppedHourlyUSD": "0.1"}))
    }

    fn ledger() -> Ledger {
        let holders = vec![
            holding("a", Some("ada"), "1"),
            holding("b", None, "3"),
            holding("c", Some("bob"), "2"),
            holding("d", Some("eve"), "0.25"),
        ];
        Ledger::new("team-vision", holders)
    }

    fn check(
        ledger: &mut Ledger,
        budget: &str,
        after: &Value,
        before: Option<&Value>,
    ) -> Result<(), String> {
        let checked = ledger.check(usd(budget), Planned { after, before }, &mut price);
        checked.map_err(|error| format!("{}: {}", error.path, error.message))
    }

    #[test]
    fn price_that_does_not_fit_names_sum_budget_rest_and_highest_prices() {
        let told = check(&mut ledger(), "7.5", &workspace("new", "g4dn.4xlarge"), None);
        assert_eq!(
            told.unwrap_err(),
            "metadata.namespace: found 8.250 USD per hour with 2.000 for this environment; \
             allowed: 7.500, the budget of namespace team-vision. 1.250 is left, which is enough \
             for the machine type g4dn.2xlarge. The highest prices: GpuDevWorkspaceClaim b \
             (3.000), GpuDevWorkspaceClaim c of bob (2.000), GpuDevWorkspaceClaim a of ada (1.000)"
        );
        let told = check(&mut ledger(), "6.5", &workspace("new", "g4dn.xlarge"), None).unwrap_err();
        assert!(told.contains(". 0.250 is left. The highest"), "{told}");
        let told = check(&mut ledger(), "5", &workspace("new", "g4dn.xlarge"), None).unwrap_err();
        assert!(told.contains(". Nothing is left of the budget. The highest"), "{told}");
        let mut empty = Ledger::new("team-vision", Vec::new());
        let told = check(&mut empty, "0.1", &workspace("new", "g4dn.xlarge"), None).unwrap_err();
        assert!(told.ends_with(". 0.100 is left"), "{told}");
    }

    #[test]
    fn documents_of_one_command_count_together() {
        let mut ledger = ledger();
        for (name, fits) in [("e", true), ("f", true), ("g", false)] {
            let told = check(&mut ledger, "7.25", &workspace(name, "g4dn.xlarge"), None);
            assert_eq!(told.is_ok(), fits, "{name}: {told:?}");
        }
    }

    #[test]
    fn change_is_rejected_only_if_it_raises_the_price() {
        let (small, large) = (workspace("a", "g4dn.xlarge"), workspace("a", "g4dn.4xlarge"));
        let middle = workspace("a", "g4dn.2xlarge");
        for (before, after, fits) in [
            (&large, &small, true),
            (&middle, &middle, true),
            // The status still has the price of an earlier release.
            (&large, &large, true),
            (&middle, &large, false),
            (&small, &large, false),
        ] {
            let told = check(&mut ledger(), "1", after, Some(before));
            assert_eq!(told.is_ok(), fits, "{before} {after}: {told:?}");
        }
    }

    #[test]
    fn environment_without_a_price_is_not_rejected() {
        assert!(check(&mut ledger(), "1", &workspace("new", "g9.huge"), None).is_ok());
    }

    #[test]
    fn stopped_environment_counts_with_its_price_while_stopped() {
        let mut off = workspace("new", "g4dn.4xlarge");
        off["spec"]["lifecycle"] = json!({"power": "Stopped"});
        assert!(check(&mut ledger(), "6.35", &off, None).is_ok());
        assert!(check(&mut ledger(), "6.34", &off, None).is_err());
        // A user stopped it by a command, and the file does not start it.
        let mut before = workspace("new", "g4dn.xlarge");
        before["status"] = json!({"power": "Stopped"});
        let after = workspace("new", "g4dn.4xlarge");
        assert!(check(&mut ledger(), "6.35", &after, Some(&before)).is_ok());
        // The file starts it.
        before["spec"]["lifecycle"] = json!({"power": "Stopped"});
        assert!(check(&mut ledger(), "6.35", &after, Some(&before)).is_err());
    }

    #[test]
    fn holder_has_the_price_of_the_present_state() {
        let mut object = ready();
        assert_eq!(Holder::from_environment(&environment(&object)), None);
        object["status"]["estimatedHourlyUSD"] = json!("0.542");
        object["status"]["estimatedStoppedHourlyUSD"] = json!("0.011");
        object["status"]["power"] = json!("Running");
        let hourly =
            |object: &Value| Holder::from_environment(&environment(object)).unwrap().hourly;
        assert_eq!(hourly(&object), usd("0.542"));
        object["status"]["power"] = json!("Stopped");
        assert_eq!(hourly(&object), usd("0.011"));
        assert!(Holder::from_environment(&environment(&object)).unwrap().is(&object));
    }
}
