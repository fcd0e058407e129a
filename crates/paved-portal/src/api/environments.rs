//! `/api/v1/environments`: the environments that the user may read.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::api::{DynamicObject, ListParams};
use paved_client::cluster::{InvalidSelector, Kind, Selector, is_denied};
use paved_client::environment::tidy;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::composer::Composer;
use crate::access::Access;
use crate::answer::Answer;
use crate::clients::Clients;
use crate::extract::{Path, Query, name};
use crate::identity::Person;
use crate::kinds::Catalog;
use crate::limits::Limits;
use crate::live::{Entry, Key, Live, View};
use crate::problem::{ErrorResponses, NotFound, Problem};
use crate::signed_in::SignedIn;

/// The default and the maximum number of environments in a page.
const PAGE: (usize, usize) = (100, 500);

/// The filters of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Which {
    /// A name of the kind, for example its plural, alone or with .group.
    kind: Option<String>,
    /// Namespace of the environments.
    namespace: Option<String>,
    /// The owner: a login, or the value of the label `owner`.
    owner: Option<String>,
    /// A phase, for example Ready; upper or lower case.
    phase: Option<String>,
    /// A part of the name.
    search: Option<String>,
    /// Labels of the environments, as in kubectl: `team=vision,stage!=prod`. Not empty.
    label_selector: Option<String>,
    /// Maximum number of environments in a page [default: 100, at most 500].
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The value of `continue` in the previous page.
    #[serde(rename = "continue")]
    after: Option<String>,
}

/// A page of environments, sorted by kind, namespace and name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    items: Vec<View>,
    /// The value of `continue` for the next page, if any.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An environment and its object in the API server.
#[derive(Serialize, ToSchema)]
#[schema(as = Whole)]
pub(crate) struct EnvironmentDetail {
    #[serde(flatten)]
    pub(crate) view: View,
    /// The object.
    #[schema(value_type = Object)]
    pub(crate) object: Value,
}

/// The place of an environment.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct EnvironmentPath {
    /// The namespace.
    #[param(example = "team-vision")]
    namespace: String,
    /// A name of the kind, for example its plural, alone or with .group.
    #[param(example = "stockpools")]
    kind: String,
    /// The name.
    #[param(example = "render")]
    name: String,
}

impl EnvironmentPath {
    /// The kind, and the validated namespace and name.
    pub(crate) fn read(&self, catalog: &Catalog) -> Result<(Kind, &str, &str), Problem> {
        let kind = catalog.seen().called(&self.kind)?;
        Ok((kind, name("namespace", &self.namespace)?, name("name", &self.name)?))
    }
}

/// The environments of the cluster.
#[derive(Clone)]
pub(crate) struct Environments {
    pub(crate) clients: Clients,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) access: Arc<Access>,
    pub(crate) live: Arc<Live>,
    pub(crate) composer: Arc<Composer>,
    /// The only watched namespace, if the kubeconfig's user has no rights in others.
    pub(crate) only: Option<String>,
    pub(crate) limits: Limits,
}

impl Environments {
    /// All environments that the filter selects and the user may see.
    pub(crate) async fn visible(
        &self,
        person: &Person,
        fits: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Arc<Entry>>, Problem> {
        self.live.seen_whole()?;
        let mut entries = self.live.all();
        entries.retain(|entry| fits(entry));
        self.access.ask_ahead(person, entries.iter().map(|entry| entry.place())).await?;
        let mut answers: HashMap<(String, String), bool> = HashMap::new();
        let mut visible = Vec::new();
        for entry in entries {
            let place = (entry.key.kind.clone(), entry.key.namespace.clone());
            let sees = if let Some(sees) = answers.get(&place) {
                *sees
            } else {
                let sees = self.access.sees(person, &entry.kind, &entry.key.namespace).await?;
                answers.insert(place, sees);
                sees
            };
            if sees {
                visible.push(entry);
            }
        }
        Ok(visible)
    }

    /// Environments of these kinds that the user may see, read from the API server. Another replica
    /// may have just created one. Environments that are being deleted come last.
    pub(crate) async fn find(
        &self,
        person: &Person,
        kinds: &[Kind],
        which: &ListParams,
    ) -> Result<Vec<(Kind, DynamicObject)>, Problem> {
        let client = self.clients.own().client;
        let mut found = Vec::new();
        for kind in kinds {
            let listed = match kind.api(&client, self.only.as_deref()).list(which).await {
                // The portal's role does not cover the kind. As in the watches, other kinds remain
                // available.
                Err(error) if is_denied(&error) => continue,
                listed => listed?,
            };
            for object in listed.items {
                let namespace = object.metadata.namespace.clone().unwrap_or_default();
                if self.access.sees(person, kind, &namespace).await? {
                    found.push((kind.clone(), object));
                }
            }
        }
        found.sort_by_key(|(_, object)| object.metadata.deletion_timestamp.is_some());
        Ok(found)
    }

    /// The representation of an object for clients. During its deletion, it has the remaining
    /// resources.
    pub(crate) fn whole(&self, kind: &Kind, mut object: DynamicObject) -> EnvironmentDetail {
        let types = || kube::api::TypeMeta {
            api_version: kind.resource.api_version.clone(),
            kind: kind.name().to_owned(),
        };
        object.types.get_or_insert_with(types);
        let mut view = View::from_object(&object, &kind.resource.plural);
        if view.deleted_at.is_some() {
            let key = Key {
                kind: kind.full_name(),
                namespace: view.namespace.clone(),
                name: view.name.clone(),
            };
            let seen = self
                .live
                .get(&key)
                .filter(|entry| entry.view.uid == view.uid && entry.is_deleting());
            if let Some(entry) = seen {
                let seen = &entry.view;
                view.parts.clone_from(&seen.parts);
                view.progress.clone_from(&seen.progress);
                view.message.clone_from(&seen.message);
            }
        }
        EnvironmentDetail { view, object: tidy(&object) }
    }
}

/// Environments of all kinds.
#[utoipa::path(get, path = "/api/v1/environments", operation_id = "listEnvironments", tag = "environments", params(Which),
    responses((status = 200, description = "A page of the environments that I may read.", body = Page), ErrorResponses, NotFound))]
pub(crate) async fn list(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Query(which): Query<Which>,
) -> Result<Answer<Page>, Problem> {
    let kind =
        which.kind.as_deref().map(|kind| environments.catalog.seen().called(kind)).transpose()?;
    let kind = kind.map(|kind| kind.full_name());
    let labels = which.label_selector.as_deref().map(selector).transpose()?;
    let limit = which.limit.unwrap_or(PAGE.0);
    if !(1..=PAGE.1).contains(&limit) {
        return Err(Problem::field("limit", format!("found {limit}; allowed: 1 to {}", PAGE.1)));
    }
    let after = which.after.as_deref().map(after).transpose()?;
    let same = |wanted: &Option<String>, found: &str| {
        wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
    };
    // `paved apply` does not know the portal's OpenID provider, so it records the username.
    let is_mine = |owner: &String| *owner == person.owner().label();
    let fits = |entry: &Entry| {
        let owner = which.owner.as_ref().is_none_or(|owner| {
            entry.view.owner.as_ref() == Some(owner)
                || entry.view.labels.get("owner") == Some(owner)
                || (entry.view.owner.as_deref() == Some(person.username()) && is_mine(owner))
        });
        kind.as_ref().is_none_or(|kind| *kind == entry.key.kind)
            && which.namespace.as_ref().is_none_or(|namespace| *namespace == entry.key.namespace)
            && same(&which.phase, &entry.view.phase)
            && which
                .search
                .as_ref()
                .is_none_or(|part| entry.key.name.contains(&part.to_lowercase()))
            && owner
            && labels.as_ref().is_none_or(|labels| labels.selects(&entry.view.labels))
            && after.as_ref().is_none_or(|after| entry.key > *after)
    };
    let found = environments.visible(&person, fits).await?;
    let next = (found.len() > limit).then(|| token(&found[limit - 1].key)).transpose()?;
    let items = found.iter().take(limit).map(|entry| entry.view.clone()).collect();
    Ok(Answer(Page { items, next }))
}

fn selector(text: &str) -> Result<Selector, Problem> {
    text.parse().map_err(|error| {
        let advice = match error {
            InvalidSelector::Empty => ". Use LABEL=VALUE, or leave the parameter out",
            _ => "",
        };
        Problem::field("labelSelector", format!("{error}{advice}"))
    })
}

fn token(key: &Key) -> Result<String, Problem> {
    let text = serde_json::to_vec(&[&key.kind, &key.namespace, &key.name]);
    text.map(|text| URL_SAFE_NO_PAD.encode(text))
        .map_err(|_| Problem::bad_request("continue: the next page could not be encoded"))
}

fn after(token: &str) -> Result<Key, Problem> {
    let text = URL_SAFE_NO_PAD.decode(token).ok();
    let key = text.and_then(|text| serde_json::from_slice::<[String; 3]>(&text).ok());
    let [kind, namespace, name] = key.ok_or_else(|| {
        Problem::field(
            "continue",
            "allowed: the value of `continue` in an \
             earlier page",
        )
    })?;
    Ok(Key { kind, namespace, name })
}

/// The current state of an environment from the API server.
#[utoipa::path(get, path = "/api/v1/environments/{namespace}/{kind}/{name}", operation_id = "getEnvironment", tag = "environments", params(EnvironmentPath),
    responses((status = 200, description = "The environment.", body = EnvironmentDetail), ErrorResponses, NotFound))]
pub(crate) async fn get(
    State(environments): State<Environments>,
    SignedIn(person): SignedIn,
    Path(place): Path<EnvironmentPath>,
) -> Result<Answer<EnvironmentDetail>, Problem> {
    let (kind, namespace, name) = place.read(&environments.catalog)?;
    let object =
        kind.api(&environments.clients.for_person(&person)?, Some(namespace)).get(name).await?;
    Ok(Answer(environments.whole(&kind, object)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn next_page_continues_after_the_last_key() {
        let key = Key { kind: "K.g".into(), namespace: "team".into(), name: "ada".into() };
        assert_eq!(after(&token(&key).unwrap()).unwrap(), key);
        for strange in ["", "x", "AAAA", "W10"] {
            assert!(after(strange).is_err(), "{strange}");
        }
    }

    #[test]
    fn empty_selector_is_rejected_with_advice() {
        for empty in ["", " ", ",", ", ,"] {
            let problem = selector(empty).unwrap_err();
            assert!(format!("{problem:?}").contains("leave the parameter out"), "{problem:?}");
        }
        assert!(selector("a=b, c==d").is_ok() && selector("a=b,").is_err());
    }
}
