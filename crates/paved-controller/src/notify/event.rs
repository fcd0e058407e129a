//! Events in the form of CloudEvents 1.0.

use crossplane::command::Target;
use function_paved_road::catalog::prices::Usd;
use function_paved_road::{apis, manifests};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::record::{Record, State};
use crate::store::Key;

/// The beginning of the types of events.
const TYPES: &str = "io.crossplane.fn.paved-road";

/// An event. Its fields are those of CloudEvents 1.0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Event {
    pub specversion: &'static str,
    /// The same for the same transition of the same environment, however often it is sent.
    pub id: String,
    pub source: &'static str,
    #[serde(rename = "type")]
    pub kind: String,
    pub subject: String,
    pub time: Timestamp,
    pub datacontenttype: &'static str,
    pub data: Value,
}

/// A namespace over its budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Excess {
    /// When it went over its budget.
    pub since: Timestamp,
    /// The cost of an hour at that time.
    pub hourly: Usd,
    /// The budget for an hour at that time.
    pub budget: Usd,
}

impl Event {
    fn new(id: String, kind: &str, subject: String, time: Timestamp, data: Value) -> Self {
        Self {
            specversion: "1.0",
            id,
            source: "/paved-road/controller",
            kind: format!("{TYPES}.{kind}"),
            subject,
            time,
            datacontenttype: "application/json",
            data,
        }
    }

    /// An environment came into a state at a time.
    pub fn entered(state: State, second: i64, key: &Key, record: &Record) -> Self {
        let id = format!("{}-{}-{second}", record.uid, state.word());
        let time = Timestamp::from_second(second).unwrap_or_default();
        let kind = format!("environment.{}", state.word());
        let message = sentence(state, key, record);
        Self::new(id, &kind, subject(key), time, data(key, record, &message))
    }

    /// An environment is gone.
    pub fn deleted(key: &Key, record: &Record, now: Timestamp) -> Self {
        let id = format!("{}-deleted", record.uid);
        let message = format!("{} is deleted", title(key));
        Self::new(id, "environment.deleted", subject(key), now, data(key, record, &message))
    }

    /// A namespace is over its budget.
    pub fn over_budget(namespace: &str, excess: &Excess) -> Self {
        let Excess { since, hourly, budget } = excess;
        let id = format!("{namespace}-over-budget-{budget}-{}", since.as_second());
        let message = format!(
            "The environments in namespace {namespace} cost {hourly} USD per hour, and the budget \
             is {budget} USD per hour"
        );
        let data = json!({
            "namespace": namespace,
            "estimatedHourlyUSD": hourly,
            "budgetHourlyUSD": budget,
            "message": message,
        });
        Self::new(id, "namespace.over-budget", namespace.to_owned(), *since, data)
    }

    /// The EnvironmentConfig with the Settings is missing. A leader that finds this again within the
    /// hour sends the same id.
    pub fn no_settings(name: &str, now: Timestamp) -> Self {
        let id = format!("{name}-settings-missing-{}", now.as_second() / 3600);
        let message = format!(
            "The EnvironmentConfig {name} is missing or has no data, so the controller deletes no \
             expired environment. Create it, or start the controller with --settings-from none"
        );
        let data = json!({"environmentConfig": name, "message": message});
        Self::new(id, "settings.missing", name.to_owned(), now, data)
    }

    /// An event to check a template with.
    pub fn sample() -> Self {
        let key = Key {
            kind: "GpuDevWorkspaceClaim.platform.acme.io".into(),
            namespace: "team-vision".into(),
            name: "ada-gpu".into(),
        };
        let record = Record {
            uid: "00000000-0000-0000-0000-000000000000".into(),
            owner: Some("ada".into()),
            expires_at: None,
            deletes_at: None,
            is_applied: false,
            hourly: None,
            budget: None,
            moments: [0; State::ALL.len()],
        };
        Self::entered(State::Ready, 0, &key, &record)
    }
}

/// Kind and group of a key.
fn kind_and_group(key: &Key) -> (&str, &str) {
    key.kind.split_once('.').unwrap_or((&key.kind, ""))
}

fn title(key: &Key) -> String {
    format!("{} {}/{}", kind_and_group(key).0, key.namespace, key.name)
}

fn subject(key: &Key) -> String {
    format!("{}/{}/{}", key.namespace, kind_and_group(key).0, key.name)
}

fn data(key: &Key, record: &Record, message: &str) -> Value {
    let (kind, group) = kind_and_group(key);
    let mut data = json!({
        "kind": kind,
        "group": group,
        "namespace": &*key.namespace,
        "name": &*key.name,
        "uid": &*record.uid,
        "owner": record.owner.as_deref(),
        "expiresAt": record.expires_at,
        "deletesAt": record.deletes_at,
        "estimatedHourlyUSD": record.hourly,
        "message": message,
    });
    if let Some(fields) = data.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    data
}

/// A command about an environment, which means the same environment in every shell.
fn command(verb: &str, key: &Key, arguments: &str) -> String {
    let (kind, group) = kind_and_group(key);
    let kind = apis::called(&manifests::api_version(group), kind);
    Target { kind: &kind, namespace: Some(&key.namespace), name: &key.name }
        .command(verb, arguments)
}

fn sentence(state: State, key: &Key, record: &Record) -> String {
    let title = title(key);
    let renew = command("extend", key, "4h");
    let start = command("start", key, "");
    // A stopped environment is warned of its deletion.
    let state =
        if state == State::Expiring && record.is_stopped() { State::Stopped } else { state };
    match (state, record.expires_at, record.deletes_at) {
        (State::Ready, ..) => format!("{title} is ready"),
        (State::Failed, ..) => {
            format!("{title} has failed. To see why, run: {}", command("status", key, ""))
        }
        (State::Expiring, Some(at), _) => {
            format!("{title} expires at {at}. To renew it, run: {renew}")
        }
        (State::Expiring, ..) => {
            format!("{title} expires soon. To renew it, run: {renew}")
        }
        (State::Stopped, _, Some(at)) => {
            format!("{title} is stopped, and is deleted at {at}. To start it, run: {start}")
        }
        (State::Stopped, ..) => {
            format!("{title} is stopped. To start it, run: {start}")
        }
        (State::Deleting, ..) => format!("{title} is being deleted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_the_group_of_a_kind_that_both_apis_have() {
        for (kind, expected) in [
            ("Environment.platform.m.acme.io", "environment.platform.m.acme.io"),
            ("GpuDevWorkspaceClaim.platform.acme.io", "gpudevworkspaceclaim"),
        ] {
            let key = Key { kind: kind.into(), namespace: "team".into(), name: "ada".into() };
            assert_eq!(
                command("extend", &key, "4h"),
                format!("paved extend {expected}/ada 4h -n team")
            );
            assert_eq!(command("start", &key, ""), format!("paved start {expected}/ada -n team"));
        }
    }
}
