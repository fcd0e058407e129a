//! The namespace of new environments: from the request, or from the platform's template.

use paved_client::cluster::Kind;

use super::access::Access;
use super::identity::Person;
use super::problem::Problem;
use super::template::{MAX_NAMESPACE_LEN, Template, slug};

/// The possible namespaces of a user's environments, without a review of every existing namespace.
#[derive(Clone)]
pub(super) struct Namespaces {
    template: Option<Template>,
    /// The namespace without a template.
    fallback: Option<String>,
}

impl Namespaces {
    pub(super) fn new(template: Option<Template>, fallback: Option<String>) -> Self {
        Self { template, fallback }
    }

    /// The default namespaces of a user. A service account also has its own namespace, because it
    /// has no groups for a template.
    pub(super) fn candidates(&self, person: &Person) -> Vec<String> {
        let account = person.username().strip_prefix("system:serviceaccount:");
        let own = account.and_then(|account| account.split(':').next()).map(str::to_owned);
        match &self.template {
            Some(template) => template.namespaces(person).into_iter().chain(own).collect(),
            None => self.fallback.iter().cloned().collect(),
        }
    }

    /// Whether the portal has no default namespace for the user, because a template is missing.
    pub(super) fn leads_nowhere(&self, person: &Person) -> bool {
        self.template.is_none() && self.candidates(person).is_empty()
    }

    /// The namespace for a new environment of this kind: the chosen one, or the first candidate
    /// that the person may create in.
    pub(super) async fn choose(
        &self,
        access: &Access,
        person: &Person,
        kind: &Kind,
        chosen: Option<&str>,
    ) -> Result<String, Problem> {
        if let Some(chosen) = chosen {
            // The API server itself decides on the write. It knows more than a review in advance.
            if slug(chosen) == chosen && !chosen.is_empty() && chosen.len() <= MAX_NAMESPACE_LEN {
                return Ok(chosen.to_owned());
            }
            return Err(Problem::field(
                "metadata.namespace",
                format!(
                    "found {chosen:?}; allowed: a \
                name"
                ),
            ));
        }
        let candidates = self.candidates(person);
        for candidate in &candidates {
            if access.may_create(person, kind, candidate).await? {
                return Ok(candidate.clone());
            }
        }
        let kind = kind.name();
        Err(Problem::forbidden(if candidates.is_empty() {
            format!(
                "You have no default namespace for {kind}. Name a namespace. If the request has \
                 no field for it, ask the operator of the \
                 portal to set --namespace-template."
            )
        } else {
            let tried = candidates.join(", ");
            format!(
                "You may not create {kind} in your default namespaces ({tried}). Name another \
                 namespace. If the request has no field for it, \
                 ask for the right to create {kind} there."
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_account_of_kubernetes_own_has_its_namespace() {
        let account =
            Person::for_tests("system:serviceaccount:team-vision:ci", &["system:serviceaccounts"]);
        let template = |text: &str| Namespaces::new(Template::parse(text).ok(), None);
        assert_eq!(template("team-{group}").candidates(&account), ["team-vision"]);
        assert_eq!(template("shared").candidates(&account), ["shared", "team-vision"]);
        assert!(Namespaces::new(None, None).candidates(&account).is_empty());
    }
}
