//! The table that finds the behaviour of a kind.

use serde_json::Value;

use super::kind_behaviour::{DEFAULT, KindBehaviour};
use super::{aws, azure, behaviour, builtin, crossplane, gcp, helm, helm_charts, object, sql};
use ::crossplane::api_version::group_of;
use ::crossplane::json::text;

/// The behaviour of an object's kind, with the facts about it.
pub(super) fn for_object(object: &Value) -> KindBehaviour {
    let group = group_of(object);
    let kind = text(object, &["kind"]).unwrap_or_default();
    let (behaviour, facts) = (in_table(group, kind), behaviour::for_object(object));
    let asynchronous = facts.map_or(behaviour.asynchronous, |facts| facts.asynchronous);
    KindBehaviour { asynchronous, facts, ..behaviour }
}

fn in_table(group: &str, kind: &str) -> KindBehaviour {
    let mut labels = group.split('.').filter(|label| *label != "m");
    match (labels.next().unwrap_or_default(), labels.next().unwrap_or_default()) {
        (service, "aws") => aws::behaviour(service, kind),
        (service, "gcp") => gcp::behaviour(service, kind),
        (_, "azure") => azure::behaviour(kind),
        ("postgresql" | "mysql" | "mssql", "sql") => sql::behaviour(kind),
        _ if kind.ends_with("ProviderConfig") => crossplane::CONFIG,
        ("helm", "crossplane") => helm::RELEASE,
        ("kubernetes", "crossplane") => OBJECT,
        ("protection" | "apiextensions", "crossplane") => crossplane::behaviour(kind),
        _ if (group, kind) == ("argoproj.io", "Application") => helm_charts::APPLICATION,
        _ if group == "operator.knative.dev" => helm_charts::KNATIVE,
        _ if is_builtin(group) => builtin::behaviour(kind),
        _ => DEFAULT,
    }
}

/// An Object contains an object of any kind, which this table finds.
const OBJECT: KindBehaviour = KindBehaviour {
    effects: |object, before, world, details| {
        object::create(object, before, world, details, for_object);
    },
    ..object::OBJECT
};

fn is_builtin(group: &str) -> bool {
    ["", "apps", "batch", "autoscaling", "policy"].contains(&group) || group.ends_with(".k8s.io")
}
