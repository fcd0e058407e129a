//! The groups that the portal may impersonate. Kubernetes rejects a whole request for one group
//! that the portal's role does not list. Such groups are left out, so their members have the rights
//! of their other groups only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::try_join_all;

use super::access::{Access, Groups};
use super::identity::Person;
use super::problem::Problem;

/// The maximum number of a user's groups reviewed one by one, if the portal's rules do not list
/// them.
const ASKED: usize = 200;

/// The maximum number of logged groups.
const MAX_LOGGED_GROUPS: usize = 1000;

/// The groups that were logged. The log names each once.
#[derive(Default)]
pub(super) struct Impersonation {
    told: Mutex<BTreeSet<String>>,
}

impl Impersonation {
    /// The user of a session with only the groups that the portal may act for. The API server
    /// decides this right. Without its answer, the request fails.
    pub(super) async fn narrowed(
        &self,
        access: &Access,
        person: Arc<Person>,
    ) -> Result<Arc<Person>, Problem> {
        if !access.portal_may_act_for("users", person.username()).await? {
            return Err(Problem::forbidden(format!(
                "The portal has no permission to act for you. Ask its operator to add the user \
                 {:?} to \
                 `impersonation.users` of the chart.",
                person.username()
            )));
        }
        let groups = self.groups(access, person.groups()).await?;
        if groups.len() == person.groups().len() {
            return Ok(person);
        }
        Ok(Arc::new(person.in_groups(groups)))
    }

    /// The subset of groups that the portal may act for.
    pub(super) async fn groups(
        &self,
        access: &Access,
        groups: &[String],
    ) -> Result<Vec<String>, Problem> {
        let answers: Vec<bool> = match access.portal_groups().await? {
            Groups::All => vec![true; groups.len()],
            Groups::Named(named) => groups.iter().map(|group| named.contains(group)).collect(),
            Groups::Unlisted if groups.len() > ASKED => {
                return Err(Problem::forbidden(format!(
                    "You are in {} groups; allowed: at most {ASKED}. Ask the operator of the \
                     portal to list the groups \
                     in `impersonation.groups` of the chart.",
                    groups.len()
                )));
            }
            Groups::Unlisted => {
                let each = groups.iter().map(|group| access.portal_may_act_for("groups", group));
                try_join_all(each).await?
            }
        };
        let among = |wanted: bool| {
            let pairs = groups.iter().zip(&answers).filter(move |(_, may)| **may == wanted);
            pairs.map(|(group, _)| group.clone()).collect::<Vec<_>>()
        };
        self.tell(among(false));
        Ok(among(true))
    }

    fn tell(&self, groups: Vec<String>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for group in groups {
            if told.len() < MAX_LOGGED_GROUPS && told.insert(group.clone()) {
                tracing::warn!(
                    group,
                    "the portal omits a group, because its role may not impersonate the group"
                );
            }
        }
    }
}
