//! Authentication and authorization of users.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, header};
use serde_json::{Value, json};

use crate::answer::Refused;

/// The verbs that a rules review lists.
const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// A user of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

impl User {
    /// A user in these groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }
}

/// Allows or denies a verb to a user.
#[derive(Clone, Debug)]
struct Rule {
    user: String,
    verb: String,
    place: String,
    allowed: bool,
}

/// Authentication and authorization.
pub struct Access {
    /// The user of callers without a token.
    anonymous: Option<User>,
    users: Vec<User>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The last rule that matches decides.
    rules: Vec<Rule>,
    /// Users with an authorization webhook in addition to the rules.
    webhooks: BTreeSet<String>,
}

impl Access {
    /// Every caller is this user and has all rights.
    pub fn open(user: User) -> Self {
        let access = Self { anonymous: Some(user), users: Vec::new(), inner: Mutex::default() };
        access.set("*", "*", "*", true);
        access
    }

    /// Only these users are known, each by the bearer token `token-NAME`. Initially they have no
    /// rights.
    pub fn closed(users: Vec<User>) -> Self {
        Self { anonymous: None, users, inner: Mutex::default() }
    }

    /// Allows or denies a verb to a user. The last matching rule decides. `*` matches every user,
    /// verb or place. A place is one of:
    /// - a namespace. It is empty for objects without a namespace and for all namespaces at once.
    /// - the whole path of a collection or an object.
    /// - `users/NAME` or `groups/NAME` for the verb `impersonate`.
    pub fn set(&self, user: &str, verb: &str, place: &str, allowed: bool) {
        let [user, verb, place] = [user, verb, place].map(str::to_owned);
        self.inner().rules.push(Rule { user, verb, place, allowed });
    }

    /// Adds an authorization webhook for a user. Reviews of the user's rules are then marked
    /// incomplete, and list read rights that the user does not have.
    pub fn add_webhook(&self, user: &str) {
        self.inner().webhooks.insert(user.to_owned());
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a user may use a verb in one of these places.
    pub(crate) fn may(&self, user: &str, verb: &str, places: &[&str]) -> bool {
        let is = |own: &str, asked: &str| own == "*" || own == asked;
        let inner = self.inner();
        let rule = inner.rules.iter().rev().find(|rule| {
            let in_place = rule.place == "*" || places.contains(&rule.place.as_str());
            is(&rule.user, user) && is(&rule.verb, verb) && in_place
        });
        rule.is_some_and(|rule| rule.allowed)
    }

    /// The user of a request, after impersonation.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<User, Refused> {
        let caller = self.caller(headers)?;
        let [users, groups] =
            ["impersonate-user", "impersonate-group"].map(|name| texts(headers, name));
        let name = match users.as_slice() {
            [] => return Ok(caller),
            [name] => *name,
            _ => return Err(Refused::new(400, "BadRequest", "more than one user is impersonated")),
        };
        let groups_to_check = groups.iter().map(|group| ("groups", *group));
        for (what, name) in [("users", name)].into_iter().chain(groups_to_check) {
            if !self.may(&caller.name, "impersonate", &[&format!("{what}/{name}")]) {
                let message = format!(
                    "{what} {name:?} is forbidden: User {:?} cannot impersonate resource {what:?} in \
                     API group \"\" at the cluster scope",
                    caller.name
                );
                return Err(Refused::new(403, "Forbidden", message));
            }
        }
        Ok(User::new(name, &groups))
    }

    /// The user of the request's token.
    fn caller(&self, headers: &HeaderMap) -> Result<User, Refused> {
        if let Some(user) = &self.anonymous {
            return Ok(user.clone());
        }
        let tokens = texts(headers, header::AUTHORIZATION.as_str());
        let user = match tokens.as_slice() {
            [token] => token.strip_prefix("Bearer token-"),
            _ => None,
        };
        let known = self.users.iter().find(|one| Some(one.name.as_str()) == user).cloned();
        known.ok_or_else(|| Refused::new(401, "Unauthorized", "Unauthorized"))
    }

    /// The status of a review of a user's rules in a namespace.
    pub(crate) fn rules(&self, user: &str, namespace: &str) -> Value {
        let is_partial = self.inner().webhooks.contains(user);
        let claimed = |verb: &str| is_partial && ["get", "list"].contains(&verb);
        let verbs: Vec<&str> = if self.may(user, "*", &[]) {
            vec!["*"]
        } else {
            let allowed = |verb: &&str| claimed(verb) || self.may(user, verb, &[namespace]);
            VERBS.into_iter().filter(allowed).collect()
        };
        let mut rules = Vec::new();
        if !verbs.is_empty() {
            rules.push(json!({"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}));
        }
        rules.extend(self.impersonation(user));
        json!({"resourceRules": rules, "nonResourceRules": [], "incomplete": is_partial})
    }

    /// The rule that allows a user to impersonate groups: all groups, or the known groups that are
    /// not denied.
    fn impersonation(&self, user: &str) -> Option<Value> {
        if !self.may(user, "impersonate", &[]) {
            return None;
        }
        let is_denied = |rule: &Rule| {
            let is_group = rule.place.starts_with("groups/");
            rule.user == user && rule.verb == "impersonate" && is_group && !rule.allowed
        };
        let mut rule =
            json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"]});
        if self.inner().rules.iter().any(is_denied) {
            let groups = self.users.iter().flat_map(|user| &user.groups);
            let may =
                |group: &&String| self.may(user, "impersonate", &[&format!("groups/{group}")]);
            rule["resourceNames"] = groups.filter(may).cloned().collect();
        }
        Some(rule)
    }
}

/// The values of a header that are text.
fn texts<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    fn access() -> Access {
        let access = Access::closed(vec![User::new("ada", &["vision"]), User::new("portal", &[])]);
        access.set("ada", "*", "team-vision", true);
        access.set("portal", "impersonate", "*", true);
        access
    }

    fn identify(access: &Access, headers: &[(&'static str, &str)]) -> Result<User, u64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        access.identify(&map).map_err(|refused| refused.status()["code"].as_u64().unwrap())
    }

    #[test]
    fn last_rule_that_matches_decides() {
        let access = access();
        let path = "/api/v1/namespaces/team-vision/secrets/a";
        assert!(access.may("ada", "get", &["team-vision", path]));
        assert!(
            !access.may("ada", "get", &["team-sound"])
                && !access.may("eve", "get", &["team-vision"])
        );
        access.set("ada", "get", path, false);
        assert!(!access.may("ada", "get", &["team-vision", path]));
        assert!(access.may("ada", "list", &["team-vision", path]));
    }

    #[test]
    fn user_comes_from_the_token_or_the_impersonation() {
        let access = access();
        let (ada, portal) =
            (("authorization", "Bearer token-ada"), ("authorization", "Bearer token-portal"));
        assert_eq!(identify(&access, &[ada]), Ok(User::new("ada", &["vision"])));
        assert_eq!(identify(&access, &[("authorization", "Bearer token-eve")]), Err(401));
        assert_eq!(identify(&access, &[]), Err(401));
        let as_bob = [("impersonate-user", "bob"), ("impersonate-group", "sound")];
        let with = |token| [&[token][..], &as_bob].concat();
        assert_eq!(identify(&access, &with(portal)), Ok(User::new("bob", &["sound"])));
        assert_eq!(identify(&access, &with(ada)), Err(403));
        access.set("portal", "impersonate", "groups/sound", false);
        assert_eq!(identify(&access, &with(portal)), Err(403));
    }

    #[test]
    fn rules_name_rights_and_groups_that_may_be_impersonated() {
        let access = access();
        let ada = access.rules("ada", "team-sound");
        assert_eq!((&ada["resourceRules"], &ada["incomplete"]), (&json!([]), &json!(false)));
        access.add_webhook("ada");
        let ada = access.rules("ada", "team-sound");
        assert_eq!(ada["resourceRules"][0]["verbs"], json!(["get", "list"]));
        assert_eq!(ada["incomplete"], true);
        let groups = |access: &Access| {
            access.rules("portal", "")["resourceRules"][0]["resourceNames"].clone()
        };
        assert_eq!(groups(&access), Value::Null, "all groups");
        access.set("portal", "impersonate", "groups/everyone", false);
        assert_eq!(groups(&access), json!(["vision"]));
    }
}
