//! The rights of a user. The API server decides them, and the portal reviews them again every few
//! seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SelfSubjectRulesReviewSpec,
};
use kube::api::PostParams;
use paved_client::cluster::{Api, Kind};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::cache::TtlCache;
use super::clients::Clients;
use super::identity::{Credential, Naming, Person};
use super::kinds::Catalog;
use super::limits::Limits;
use super::problem::Problem;

/// The maximum number of cached answers.
const CACHE_CAPACITY: usize = 200_000;

/// The maximum number of concurrent reviews.
const CONCURRENCY: usize = 16;

/// The maximum number of concurrent reviews for one call. The rest is for other calls.
const NAMESPACE_CONCURRENCY: usize = CONCURRENCY / 2;

/// The maximum number of concurrent reviews of the portal's own right to impersonate. They have
/// their own queue, because a provider decides the number of a user's groups.
const ACTING: usize = 4;

/// Reviews rights with the API server, and briefly caches its answers for each user.
pub(super) struct Access {
    clients: Clients,
    /// The portal's own account.
    own: Person,
    catalog: Arc<Catalog>,
    answers: TtlCache<Question, bool>,
    /// Users with incomplete rules, by their key and the namespace.
    partial: TtlCache<([u8; 32], String), ()>,
    open: Semaphore,
    acting: Semaphore,
    /// The groups that the portal may act for.
    groups: TtlCache<(), Groups>,
    /// Time limit for an answer, and for the wait before the request.
    patience: Duration,
    /// The number of reviews sent to the API server.
    pub(super) asked: Counter,
}

/// The groups that the portal may act for, as its rules list them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Groups {
    All,
    Named(Arc<BTreeSet<String>>),
    /// Rules alone do not decide: the API server must review each request.
    Unlisted,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    person: [u8; 32],
    verb: &'static str,
    group: String,
    resource: String,
    /// Empty for all namespaces at once.
    namespace: String,
    name: String,
}

impl Access {
    pub(super) fn new(clients: Clients, catalog: Arc<Catalog>, limits: &Limits) -> Self {
        let patience = limits.api_answer;
        Self {
            clients,
            own: Person::from_kubernetes(&Naming::default(), "", Vec::new(), Credential::Own),
            catalog,
            answers: TtlCache::new(limits.access, patience, CACHE_CAPACITY),
            partial: TtlCache::new(limits.access, patience, CACHE_CAPACITY),
            open: Semaphore::new(CONCURRENCY),
            acting: Semaphore::new(ACTING),
            groups: TtlCache::new(limits.access, patience, 1),
            patience,
            asked: Counter::default(),
        }
    }

    /// Whether a user may list a kind in a namespace. Such a user sees all its objects there.
    pub(super) async fn sees(
        &self,
        person: &Person,
        kind: &Kind,
        namespace: &str,
    ) -> Result<bool, Problem> {
        let here = question(person, "list", kind, namespace);
        if let Some(answer) = self.answers.known(&here) {
            return Ok(answer);
        }
        if self.may(person, question(person, "list", kind, "")).await? {
            return Ok(true);
        }
        self.answers.get_or_ask(&here, self.rules(person, kind, &here)).await
    }

    /// Reviews the user's rights on all these, a few namespaces at a time. Later checks of them
    /// need no review.
    pub(super) async fn ask_ahead(
        &self,
        person: &Person,
        places: impl IntoIterator<Item = (&Kind, &str)>,
    ) -> Result<(), Problem> {
        let mut namespaces: BTreeMap<&str, BTreeMap<String, &Kind>> = BTreeMap::new();
        for (kind, namespace) in places {
            namespaces.entry(namespace).or_default().entry(kind.full_name()).or_insert(kind);
        }
        let asked =
            namespaces.into_iter().map(|(namespace, kinds)| self.look_at(person, namespace, kinds));
        stream::iter(asked.collect::<Vec<_>>())
            .buffer_unordered(NAMESPACE_CONCURRENCY)
            .try_collect()
            .await
    }

    /// All kinds of one namespace share a review.
    async fn look_at(
        &self,
        person: &Person,
        namespace: &str,
        kinds: BTreeMap<String, &Kind>,
    ) -> Result<(), Problem> {
        for kind in kinds.values() {
            self.sees(person, kind, namespace).await?;
        }
        Ok(())
    }

    /// Whether a user may create a kind in a namespace. An empty namespace means all namespaces.
    pub(super) async fn may_create(
        &self,
        person: &Person,
        kind: &Kind,
        namespace: &str,
    ) -> Result<bool, Problem> {
        self.may(person, question(person, "create", kind, namespace)).await
    }

    /// Rejects a user without the right to write an environment with this verb: update or patch.
    pub(super) async fn check_write(
        &self,
        person: &Person,
        verb: &'static str,
        (kind, namespace, name): (&Kind, &str, &str),
    ) -> Result<(), Problem> {
        let question =
            Question { name: name.to_owned(), ..question(person, verb, kind, namespace) };
        if self.may(person, question).await? {
            return Ok(());
        }
        let kind = kind.name();
        Err(Problem::forbidden(format!(
            "You may not change {kind} {name} in namespace {namespace}."
        )))
    }

    /// Whether a user may act for another one, which Kubernetes calls impersonation.
    pub(super) async fn may_act_for(&self, person: &Person, user: &str) -> Result<bool, Problem> {
        self.may(person, impersonation(person, "users", user)).await
    }

    /// Whether the portal itself may act for one of these `users` or `groups`.
    pub(super) async fn portal_may_act_for(&self, what: &str, name: &str) -> Result<bool, Problem> {
        self.may(&self.own, impersonation(&self.own, what, name)).await
    }

    /// The groups that the portal itself may act for: one review for any number of groups.
    pub(super) async fn portal_groups(&self) -> Result<Groups, Problem> {
        let ask = async {
            let _turn = self.turn(&self.acting).await?;
            self.asked.inc();
            let namespace = self.clients.own().namespace;
            let review = SelfSubjectRulesReview {
                spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace) },
                ..SelfSubjectRulesReview::default()
            };
            let reviews: Api<SelfSubjectRulesReview> =
                Api::all(self.clients.for_person(&self.own)?);
            let answer =
                answered(self.patience, reviews.create(&PostParams::default(), &review)).await?;
            let complete = answer.status.filter(|status| !status.incomplete);
            Ok(complete.map_or(Groups::Unlisted, |status| impersonated(&status.resource_rules)))
        };
        self.groups.get_or_ask(&(), ask).await
    }

    async fn may(&self, person: &Person, question: Question) -> Result<bool, Problem> {
        self.answers.get_or_ask(&question, self.ask(person, &question)).await
    }

    async fn ask(&self, person: &Person, question: &Question) -> Result<bool, Problem> {
        let is_acting = question.verb == IMPERSONATE && question.person == self.own.key();
        let _turn = self.turn(if is_acting { &self.acting } else { &self.open }).await?;
        self.asked.inc();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some(question.verb.to_owned()),
                    group: text(&question.group),
                    resource: Some(question.resource.clone()),
                    namespace: text(&question.namespace),
                    name: text(&question.name),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.clients.for_person(person)?);
        let answer =
            answered(self.patience, reviews.create(&PostParams::default(), &review)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Reviews the rules in a namespace. One answer has all rules of the namespace, and is used if
    /// it is complete. Separate reviews of each kind in each namespace would be too many.
    async fn rules(&self, person: &Person, kind: &Kind, here: &Question) -> Result<bool, Problem> {
        let is_partial = self.partial.known(&(here.person, here.namespace.clone())).is_some();
        if !is_partial {
            let _turn = self.turn(&self.open).await?;
            self.asked.inc();
            let review = SelfSubjectRulesReview {
                spec: SelfSubjectRulesReviewSpec { namespace: Some(here.namespace.clone()) },
                ..SelfSubjectRulesReview::default()
            };
            let reviews: Api<SelfSubjectRulesReview> = Api::all(self.clients.for_person(person)?);
            let answer =
                answered(self.patience, reviews.create(&PostParams::default(), &review)).await?;
            if let Some(status) = answer.status.filter(|status| !status.incomplete) {
                let allowed =
                    |kind: &Kind| status.resource_rules.iter().any(|rule| lists(rule, kind));
                for kind in self.catalog.seen().all() {
                    self.answers
                        .keep(question(person, "list", kind, &here.namespace), allowed(kind));
                }
                return Ok(allowed(kind));
            }
            self.partial.keep((here.person, here.namespace.clone()), ());
        }
        self.ask(person, here).await
    }

    /// A permit for a request. An unresponsive API server does not block callers without limit.
    async fn turn<'s>(&self, open: &'s Semaphore) -> Result<SemaphorePermit<'s>, Problem> {
        let turn = timeout(self.patience, open.acquire()).await.map_err(|_| Problem::silent())?;
        turn.map_err(|_| {
            Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "The portal is shutting down.")
        })
    }
}

/// The verb of impersonation.
const IMPERSONATE: &str = "impersonate";

fn question(person: &Person, verb: &'static str, kind: &Kind, namespace: &str) -> Question {
    Question {
        person: person.key(),
        verb,
        group: kind.resource.group.clone(),
        resource: kind.resource.plural.clone(),
        namespace: namespace.to_owned(),
        name: String::new(),
    }
}

fn impersonation(person: &Person, resource: &str, name: &str) -> Question {
    Question {
        person: person.key(),
        verb: IMPERSONATE,
        group: String::new(),
        resource: resource.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// The answer of the API server within the time limit.
pub(super) async fn answered<T>(
    patience: Duration,
    question: impl Future<Output = kube::Result<T>>,
) -> Result<T, Problem> {
    let answer = timeout(patience, question).await.map_err(|_| Problem::silent())?;
    Ok(answer?)
}

/// Whether a list of a rule has a name.
fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

/// The groups that the rules allow to impersonate.
fn impersonated(rules: &[ResourceRule]) -> Groups {
    let fits = |rule: &&ResourceRule| {
        has(&rule.verbs, IMPERSONATE)
            && has(rule.api_groups.as_deref().unwrap_or_default(), "")
            && has(rule.resources.as_deref().unwrap_or_default(), "groups")
    };
    let mut all = BTreeSet::new();
    for rule in rules.iter().filter(fits) {
        match rule.resource_names.as_deref() {
            None | Some([]) => return Groups::All,
            Some(names) => all.extend(names.iter().cloned()),
        }
    }
    Groups::Named(Arc::new(all))
}

/// Whether a rule allows listing all objects of a kind.
fn lists(rule: &ResourceRule, kind: &Kind) -> bool {
    has(&rule.verbs, "list")
        && has(rule.api_groups.as_deref().unwrap_or_default(), &kind.resource.group)
        && has(rule.resources.as_deref().unwrap_or_default(), &kind.resource.plural)
        && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use paved_client::samples::kinds;

    use super::*;

    #[test]
    fn rule_applies_to_its_verbs_groups_and_resources() {
        let kind = kinds().called("gpuws").unwrap().remove(0);
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let rule = |verb: &str, group: &str, resource: &str, names: &[&str]| ResourceRule {
            verbs: words(&[verb]),
            api_groups: Some(words(&[group])),
            resources: Some(words(&[resource])),
            resource_names: Some(words(names)),
        };
        let (group, plural) = (kind.resource.group.as_str(), kind.resource.plural.as_str());
        assert!(lists(&rule("list", group, plural, &[]), &kind));
        assert!(lists(&rule("*", "*", "*", &[]), &kind));
        assert!(!lists(&rule("get", group, plural, &[]), &kind));
        assert!(!lists(&rule("list", "apps", plural, &[]), &kind));
        assert!(!lists(&rule("list", group, "secrets", &[]), &kind));
        assert!(!lists(&rule("list", group, plural, &["ada"]), &kind));
    }

    #[test]
    fn impersonated_groups_are_those_of_the_rules() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let rule = |verb: &str, resource: &str, names: &[&str]| ResourceRule {
            verbs: words(&[verb]),
            api_groups: Some(words(&[""])),
            resources: Some(words(&[resource])),
            resource_names: Some(words(names)),
        };
        let named = |names: &[&str]| Groups::Named(Arc::new(words(names).into_iter().collect()));
        let two = [rule("impersonate", "groups", &["a"]), rule("*", "groups", &["b"])];
        assert_eq!(impersonated(&two), named(&["a", "b"]));
        assert_eq!(impersonated(&[rule("impersonate", "groups", &[])]), Groups::All);
        assert_eq!(
            impersonated(&[rule("impersonate", "users", &[]), rule("get", "groups", &[])]),
            named(&[])
        );
    }

    #[test]
    fn answer_is_cached_for_a_single_user() {
        let (ada, bob) = (Person::for_tests("ada", &[]), Person::for_tests("bob", &[]));
        let again = Person::for_tests("ada", &["ops"]);
        let kind = kinds().called("gpuws").unwrap().remove(0);
        let of = |person: &Person| question(person, "list", &kind, "team");
        assert_eq!(of(&ada), of(&Person::for_tests("ada", &[])));
        assert!(of(&ada) != of(&bob) && of(&ada) != of(&again));
    }
}
