//! `/api/v1/budgets`: the budgets of the namespaces that the user works in.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::composer;
use super::environments::Environments;
use crate::answer::Answer;
use crate::problem::{ErrorResponses, Problem};
use crate::signed_in::SignedIn;

/// Budgets of namespaces.
#[derive(Serialize, ToSchema)]
pub(crate) struct Budgets {
    /// US dollars for an hour, by namespace. A namespace without a budget is absent.
    #[serde(rename = "hourlyUSD")]
    hourly_usd: BTreeMap<String, String>,
}

/// The budgets of all namespaces with an environment that I see.
#[utoipa::path(get, path = "/api/v1/budgets", operation_id = "listBudgets", tag = "environments",
    responses((status = 200, description = "The budgets.", body = Budgets), ErrorResponses))]
pub(crate) async fn list(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
) -> Result<Answer<Budgets>, Problem> {
    let visible = environments.visible(&person, |_| true).await?;
    let namespaces: BTreeSet<&str> =
        visible.iter().map(|entry| entry.key.namespace.as_str()).collect();
    let mut hourly_usd = BTreeMap::new();
    // All APIs share the budgets of Settings. Without a readable one, there are none to show.
    let kinds = environments.catalog.seen();
    if let Some(kind) = kinds.all().iter().find(|kind| kind.paved_api().is_some()) {
        let step = composer::step(&environments.clients.own(), kind, &Value::Null).await;
        let settings = step.ok().and_then(|step| step.settings());
        for (namespace, budget) in namespaces.iter().filter_map(|namespace| {
            Some((*namespace, settings.as_ref()?.common.budget.of(namespace)?))
        }) {
            hourly_usd.insert(namespace.to_owned(), budget.to_string());
        }
    }
    Ok(Answer(Budgets { hourly_usd }))
}
