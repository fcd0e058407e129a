//! `paved cost`: the estimated prices of environments by owner, namespace and kind, and the budgets
//! of namespaces.

use std::collections::BTreeMap;

use function_paved_road::catalog::prices::Usd;
use function_paved_road::power::PowerState;
use function_paved_road::status::{BUDGET, Spending};
use kube::api::DynamicObject;
use paved_client::cluster::{Kind, Kinds};
use paved_client::environment::Environment;
use serde::Serialize;
use serde_json::json;

use crate::Console;
use crate::apply;
use crate::cli::{By, Cost};
use crate::documents::{self, Format};
use crate::failure::Failure;
use crate::list::Place;
use crate::style::{self, BOLD, Column, RED, Row, Table};

/// Hours of a month, as list prices by the month count them: a twelfth of 365 days.
const HOURS_PER_MONTH: u128 = 730;

/// The name of the group without a value.
const NONE: &str = "(none)";

/// The figures of an environment for the sums.
struct Priced {
    owner: String,
    namespace: String,
    kind: String,
    hourly: Option<Usd>,
    is_stopped: bool,
    /// The budget of its namespace, as the controller wrote it on the environment.
    budget: Option<Usd>,
}

impl Priced {
    fn read(object: &DynamicObject) -> Self {
        let seen = Environment::from_object(object);
        let annotations = object.metadata.annotations.as_ref();
        let spending = annotations.and_then(|all| Spending::read(all.get(BUDGET)?));
        let named = |text: &str| if text.is_empty() { NONE.to_owned() } else { text.to_owned() };
        Self {
            owner: named(seen.owner.as_deref().unwrap_or_default()),
            hourly: seen.counted_price(),
            is_stopped: seen.power == Some(PowerState::Stopped),
            budget: spending.map(|spending| spending.budget),
            namespace: seen.namespace,
            kind: seen.kind,
        }
    }
}

/// The sum of several environments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sum {
    name: String,
    environments: usize,
    stopped: usize,
    /// Environments without an estimated price, which do not count.
    unpriced: usize,
    #[serde(rename = "hourlyUSD")]
    hourly: Usd,
    #[serde(rename = "monthlyUSD")]
    monthly: Usd,
    #[serde(rename = "budgetHourlyUSD", skip_serializing_if = "Option::is_none")]
    budget: Option<Usd>,
}

impl Sum {
    fn of<'p>(name: &str, all: impl Iterator<Item = &'p Priced>) -> Self {
        let mut sum = Self { name: name.to_owned(), ..Self::default() };
        for one in all {
            sum.environments += 1;
            sum.stopped += usize::from(one.is_stopped);
            sum.unpriced += usize::from(one.hourly.is_none());
            sum.hourly = sum.hourly.plus(one.hourly.unwrap_or_default());
        }
        let monthly = sum.hourly.nanos().checked_mul(HOURS_PER_MONTH).and_then(Usd::from_nanos);
        Self { monthly: monthly.unwrap_or(sum.hourly), ..sum }
    }

    fn is_over(&self) -> bool {
        self.budget.is_some_and(|budget| self.hourly > budget)
    }
}

/// The sums of all groups, the most expensive first.
fn grouped(all: &[Priced], name: impl Fn(&Priced) -> &str) -> Vec<Sum> {
    let mut groups: BTreeMap<&str, Vec<&Priced>> = BTreeMap::new();
    for one in all {
        groups.entry(name(one)).or_default().push(one);
    }
    let mut sums: Vec<Sum> =
        groups.into_iter().map(|(name, group)| Sum::of(name, group.into_iter())).collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.hourly));
    sums
}

/// Prints the sums.
pub(crate) async fn run(args: &Cost, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let namespace = (!args.all_namespaces).then(|| cluster.namespace.clone());
    let settings = apply::budgets(&cluster).await;
    let kinds = kinds.all().to_vec();
    let place = Place { cluster, kinds, namespace, labels: None, expiring: None };
    let all = place.all(console, |_: &Kind, object| Priced::read(&object)).await?;
    let total = Sum::of("Total", all.iter());
    let mut by_namespace = grouped(&all, |one| &one.namespace);
    for sum in &mut by_namespace {
        let written = all.iter().filter(|one| one.namespace == sum.name).find_map(|one| one.budget);
        let current = settings.as_ref().map(|budget| budget.of(&sum.name));
        sum.budget = current.unwrap_or(written);
    }
    let groups = [
        (By::Owner, "OWNER", grouped(&all, |one| &one.owner)),
        (By::Namespace, "NAMESPACE", by_namespace),
        (By::Kind, "KIND", grouped(&all, |one| &one.kind)),
    ];
    if args.output.is_some() {
        let [(_, _, owners), (_, _, namespaces), (_, _, kinds)] = groups;
        let document = json!({"hoursPerMonth": 730, "total": total, "byOwner": owners,
            "byNamespace": namespaces, "byKind": kinds});
        return documents::print(&document, Format::Json, console);
    }
    if all.is_empty() {
        writeln!(console.err, "{}", place.nothing())?;
        return Ok(());
    }
    for (by, head, sums) in &groups {
        if args.by.is_none_or(|wanted| wanted == *by) {
            table(head, sums, console)?;
            writeln!(console.out)?;
        }
    }
    writeln!(
        console.out,
        "{BOLD}Total:{BOLD:#} {} USD per hour, {} USD per month at this rate (estimate)",
        total.hourly, total.monthly
    )?;
    tell(&total, &groups[1].2, settings.is_some(), console)?;
    let everywhere = if args.all_namespaces { " -A" } else { "" };
    style::next(&format!("paved list{everywhere} --sort time-left"), console)?;
    Ok(())
}

/// Prints the environments without a price, and namespaces over their budgets.
fn tell(
    total: &Sum,
    namespaces: &[Sum],
    has_settings: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if total.unpriced > 0 {
        let count = total.unpriced;
        writeln!(console.err, "note: {count} without an estimated price, not in the sums")?;
    }
    for sum in namespaces.iter().filter(|sum| sum.is_over()) {
        let Sum { name, hourly, budget, .. } = sum;
        let budget = budget.unwrap_or_default();
        writeln!(
            console.err,
            "{RED}warning{RED:#}: namespace {name} costs {hourly} USD per hour, over its budget of \
             {budget}"
        )?;
    }
    let is_unknown = !has_settings && namespaces.iter().all(|sum| sum.budget.is_none());
    if is_unknown {
        writeln!(console.err, "note: you may not read the Settings, so budgets are not known")?;
    }
    Ok(())
}

fn table(head: &'static str, sums: &[Sum], console: &mut Console<'_>) -> Result<(), Failure> {
    let has_budgets = sums.iter().any(|sum| sum.budget.is_some());
    let mut columns: Vec<Column> =
        [head, "ENVIRONMENTS", "STOPPED", "USD/H", "USD/MONTH"].map(Column::fixed).to_vec();
    columns.extend(has_budgets.then(|| Column::fixed("BUDGET/H")));
    let row = |sum: &Sum| {
        let mut cells = vec![
            sum.name.clone(),
            sum.environments.to_string(),
            sum.stopped.to_string(),
            sum.hourly.to_string(),
            sum.monthly.to_string(),
        ];
        let budget = sum.budget.map(|budget| budget.to_string()).unwrap_or_default();
        cells.extend(has_budgets.then_some(budget));
        let mark = sum.is_over().then_some((3, style::Mark::Bad));
        Row { cells, mark, note: String::new() }
    };
    let rows: Vec<Row> = sums.iter().map(row).collect();
    let room = console.terminal.as_ref().map(|terminal| (terminal.size)().1);
    Table::new(columns).print(&rows, room.filter(|room| *room > 0), &mut console.out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn priced(name: &str, owner: &str, hourly: &str, stopped: &str, power: &str) -> Priced {
        let status = json!({"power": power, "estimatedHourlyUSD": hourly,
            "estimatedStoppedHourlyUSD": stopped});
        let object: Value = json!({"apiVersion": "platform.acme.io/v1alpha1", "kind": "StockPool",
            "metadata": {"name": name, "namespace": "team", "annotations": {
                "paved-road.fn.crossplane.io/owner": owner, BUDGET: "1.000/2.500"}},
            "status": status});
        let object: DynamicObject =
            serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}"));
        Priced::read(&object)
    }

    #[test]
    fn stopped_environment_counts_with_its_own_price() {
        let all = [
            priced("a", "ada", "1.5", "0.1", "Running"),
            priced("b", "ada", "1.5", "0.1", "Stopped"),
            priced("c", "bob", "2", "0.1", "Running"),
            priced("d", "bob", "unknown", "0.1", "Running"),
        ];
        let told: Vec<String> = grouped(&all, |one| &one.owner)
            .iter()
            .map(|sum| {
                let Sum { name, environments, stopped, unpriced, hourly, monthly, .. } = sum;
                format!("{name} {environments} {stopped} {unpriced} {hourly} {monthly}")
            })
            .collect();
        assert_eq!(told, ["bob 2 0 1 2.000 1460.000", "ada 2 1 0 1.600 1168.000"]);
        assert_eq!(all[0].budget.map(|budget| budget.to_string()).as_deref(), Some("2.500"));
    }
}
