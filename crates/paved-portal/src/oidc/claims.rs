//! The provider's claims about a user, and their meaning.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::{Identity, refused};
use crate::config;
use crate::identity::may_be_named;
use crate::problem::Problem;

/// Whether the provider has verified the email address.
const VERIFIED: &str = "email_verified";

/// The longest found value in a message, in characters.
const SHOWN: usize = 40;

/// The claims of a token, without a check of its signature.
pub(super) fn payload(token: &str) -> Option<Map<String, Value>> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// The problem of a token response that could not be read. It names the claim if that is known.
pub(super) fn unreadable_response(body: &[u8]) -> Problem {
    let response: Value = serde_json::from_slice(body).unwrap_or_default();
    let claims = response["id_token"].as_str().and_then(payload).unwrap_or_default();
    verified(&claims).err().unwrap_or_else(|| {
        refused(
            "The response of the sign-in provider could not be read. Ask the operator of the \
             portal to read the log.",
        )
    })
}

/// Adds the claims of the userinfo endpoint. The address and its verification must be from the same
/// source. A verification in the ID token is not valid for an address of the userinfo endpoint, or
/// the reverse.
pub(super) fn complete(claims: &mut Map<String, Value>, mut said: Map<String, Value>) {
    match claims.get("email") {
        None => drop(claims.remove(VERIFIED)),
        Some(email) if said.get("email") != Some(email) => drop(said.remove(VERIFIED)),
        Some(_) => {}
    }
    for (claim, value) in said {
        claims.entry(claim).or_insert(value);
    }
}

/// The user of the claims, with the names in Kubernetes.
pub(super) fn identity(
    oidc: &config::Oidc,
    claims: &Map<String, Value>,
) -> Result<Identity, Problem> {
    let claim = &oidc.username_claim;
    let login = claims.get(claim).and_then(Value::as_str).unwrap_or_default();
    if claim == "email" && verified(claims)? == Some(false) {
        return Err(refused(
            "The provider has not verified your email address. Verify the address, and sign in \
             again.",
        ));
    }
    let username = format!("{}{login}", oidc.username_prefix);
    if login.is_empty() || !may_be_named(&username) {
        let detail = format!("The provider returned no valid username in the claim {claim}.");
        return Err(refused(&detail));
    }
    let named = groups(&oidc.groups_claim, claims)?;
    let named = named
        .into_iter()
        .filter(|group| !group.is_empty())
        .map(|group| format!("{}{group}", oidc.groups_prefix));
    // The provider must not assign Kubernetes' own groups: one of them has all rights.
    let mut groups: Vec<String> = named.filter(|group| may_be_named(group)).collect();
    groups.sort_unstable();
    groups.dedup();
    Ok(Identity { username, login: login.to_owned(), groups })
}

/// Whether the provider has verified the email address. `None` if it does not say so. Some
/// providers write the boolean as a text.
fn verified(claims: &Map<String, Value>) -> Result<Option<bool>, Problem> {
    match claims.get(VERIFIED) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(verified)) => Ok(Some(*verified)),
        Some(Value::String(text)) if text == "true" => Ok(Some(true)),
        Some(Value::String(text)) if text == "false" => Ok(Some(false)),
        Some(other) => {
            let found: String = other.to_string().chars().take(SHOWN).collect();
            Err(unreadable(VERIFIED, &found, "true or false"))
        }
    }
}

/// The user's groups. No groups are different from groups that the provider left out: without them,
/// all requests would be forbidden, and no message would say why.
fn groups<'c>(claim: &str, claims: &'c Map<String, Value>) -> Result<Vec<&'c str>, Problem> {
    let wrong = |found: &str| Err(unreadable(claim, found, "a list of texts"));
    let groups = match claims.get(claim) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(group)) => vec![group.as_str()],
        Some(Value::Array(groups)) => {
            match groups.iter().map(|group| group.as_str().ok_or(group)).collect() {
                Ok(groups) => groups,
                Err(other) => return wrong(&format!("a list with {}", name_of(other))),
            }
        }
        Some(other) => return wrong(name_of(other)),
    };
    if groups.is_empty() && are_left_out(claim, claims) {
        tracing::warn!(
            claim,
            "the provider left out the groups of a user, because there are too many"
        );
        let detail = format!(
            "The sign-in provider left out your groups in the claim {claim}, because you are in \
             too many. Ask the operator of the portal to limit the claim. In Entra ID, that is the \
             option \"Groups assigned to the application\"."
        );
        return Err(refused(&detail));
    }
    Ok(groups)
}

/// Whether the provider says that a claim is elsewhere. Entra ID does so for users in more than 200
/// groups, in one of two ways.
fn are_left_out(claim: &str, claims: &Map<String, Value>) -> bool {
    let is_true = |value: &Value| *value == true || *value == "true";
    if claim == "groups" && claims.get("hasgroups").is_some_and(is_true) {
        return true;
    }
    match claims.get("_claim_names") {
        Some(Value::Object(names)) => names.contains_key(claim),
        // Older tokens have the object as a text.
        Some(Value::String(text)) => {
            let names: Option<Map<String, Value>> = serde_json::from_str(text).ok();
            names.is_some_and(|names| names.contains_key(claim))
        }
        _ => false,
    }
}

/// The type of a value in words.
fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The problem of a claim with an unexpected value.
fn unreadable(claim: &str, found: &str, allowed: &str) -> Problem {
    tracing::warn!(claim, found, allowed, "a claim of the provider could not be read");
    let detail = format!(
        "The claim {claim} of the sign-in provider could not be read: found {found}; allowed: \
         {allowed}. Ask the operator of the portal to check the provider."
    );
    refused(&detail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn oidc() -> config::Oidc {
        config::Oidc {
            issuer: "https://id.example.org".into(),
            client_id: "portal".into(),
            client_secret: None,
            scopes: Vec::new(),
            username_claim: "email".into(),
            groups_claim: "groups".into(),
            username_prefix: String::new(),
            prefix_is_chosen: false,
            groups_prefix: String::new(),
            ca: None,
            session_keys: Vec::new(),
            session_ttl: Duration::from_hours(1),
        }
    }

    fn read_identity(claims: &Value) -> Result<Identity, Problem> {
        identity(&oidc(), claims.as_object().unwrap())
    }

    fn detail(claims: &Value) -> String {
        read_identity(claims).map(drop).unwrap_err().detail().to_owned()
    }

    #[test]
    fn system_users_and_groups_are_rejected() {
        let ada = read_identity(
            &json!({"email": "ada@acme.io", "groups": ["team", "system:masters", "", "a\nb"]}),
        )
        .unwrap();
        assert_eq!((ada.username.as_str(), ada.groups), ("ada@acme.io", vec!["team".to_owned()]));
        for email in ["system:admin", "", "a\r\nImpersonate-Group: system:masters", " ada"] {
            assert!(read_identity(&json!({"email": email})).is_err(), "{email}");
        }
        let mut prefixed = oidc();
        prefixed.groups_prefix = "oidc:".into();
        let all = json!({"email": "ada@acme.io", "groups": "system:masters"});
        let ada = identity(&prefixed, all.as_object().unwrap()).unwrap();
        assert_eq!(ada.groups, ["oidc:system:masters"], "the prefixed group has no rights");
    }

    #[test]
    fn verification_counts_for_the_address_of_its_own_source() {
        let bob = |verified: Value| json!({"email": "bob@acme.io", "email_verified": verified});
        for (token, apart, fits) in [
            (json!({"email_verified": true}), bob(json!(false)), false),
            (json!({"email_verified": "true"}), bob(json!("false")), false),
            (json!({"email_verified": true}), json!({"email": "bob@acme.io"}), true),
            (json!({"email_verified": false}), bob(json!(true)), true),
            (json!({"email": "ada@acme.io"}), bob(json!(false)), true),
            (json!({"email": "bob@acme.io"}), bob(json!(false)), false),
            (json!({"email": "bob@acme.io", "email_verified": true}), bob(json!(false)), true),
        ] {
            let mut claims = token.as_object().unwrap().clone();
            complete(&mut claims, apart.as_object().unwrap().clone());
            assert_eq!(identity(&oidc(), &claims).is_ok(), fits, "{token} {apart}");
        }
    }

    #[test]
    fn unverified_address_belongs_to_no_user() {
        let verified =
            |verified: &Value| json!({"email": "ada@acme.io", "email_verified": verified});
        for value in [json!(true), json!("true"), json!(null)] {
            assert!(read_identity(&verified(&value)).is_ok(), "{value}");
        }
        for value in [json!(false), json!("false")] {
            assert!(detail(&verified(&value)).contains("has not verified"), "{value}");
        }
        for value in [json!(1), json!(0), json!("TRUE"), json!("yes"), json!(""), json!([true])] {
            let message = detail(&verified(&value));
            let part =
                format!("email_verified of the sign-in provider could not be read: found {value}");
            assert!(
                message.contains(&part) && message.contains("allowed: true or false"),
                "{message}"
            );
        }
    }

    #[test]
    fn omitted_groups_are_an_error_with_the_remedy() {
        let sources = json!({"src1": {"endpoint": "https://graph.example.org/getMemberObjects"}});
        for extra in [
            json!({"_claim_names": {"groups": "src1"}, "_claim_sources": sources}),
            json!({"_claim_names": {"groups": "src1"}, "groups": []}),
            json!({"_claim_names": r#"{"groups":"src1"}"#}),
            json!({"hasgroups": true}),
            json!({"hasgroups": "true"}),
            json!({"hasgroups": true, "groups": null}),
        ] {
            let mut claims = json!({"email": "ada@acme.io"});
            claims.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let message = detail(&claims);
            assert!(message.contains("Groups assigned to the application"), "{claims}: {message}");
        }
        for claims in [
            json!({"hasgroups": false}),
            json!({"_claim_names": {"roles": "src1"}}),
            json!({"_claim_names": {}}),
            json!({"hasgroups": true, "groups": ["vision"]}),
            json!({"_claim_names": {"groups": "src1"}, "groups": ["vision"]}),
        ] {
            let mut claims = claims;
            claims["email"] = json!("ada@acme.io");
            assert!(read_identity(&claims).is_ok(), "{claims}");
        }
        let mut other = oidc();
        other.groups_claim = "roles".into();
        let claims = json!({"email": "ada@acme.io", "_claim_names": {"roles": "src1"}});
        assert!(identity(&other, claims.as_object().unwrap()).is_err());
    }

    #[test]
    fn groups_of_another_type_are_an_error() {
        for (groups, found) in [
            (json!([{"name": "team-vision"}]), "a list with an object"),
            (json!(["team-vision", 3]), "a list with a number"),
            (json!([null]), "a list with null"),
            (json!([["team-vision"]]), "a list with a list"),
            (json!(7), "a number"),
            (json!(true), "a boolean"),
            (json!({"team-vision": {}}), "an object"),
        ] {
            let message = detail(&json!({"email": "ada@acme.io", "groups": groups}));
            let part = format!("could not be read: found {found}; allowed: a list of texts");
            assert!(message.contains(&part), "{message}");
        }
        for (groups, names) in
            [(json!(null), vec![]), (json!([]), vec![]), (json!("vision"), vec!["vision"])]
        {
            let claims = json!({"email": "ada@acme.io", "groups": groups});
            assert_eq!(read_identity(&claims).unwrap().groups, names);
        }
    }
}
