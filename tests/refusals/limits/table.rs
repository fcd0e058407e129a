//! The table of limits and fields.

use std::collections::BTreeSet;

use function_paved_road::apis::AnyApi;
use function_paved_road::settings::Settings;

use super::*;

/// The revision that carries the lifecycle.
pub const LIFECYCLE: u32 = 3;

/// The result for a new environment. A running environment continues in each case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The environment is rejected at every revision, with the field and the allowed values.
    Value,
    /// The limit changes resources or the status at every revision.
    Applied,
    /// The limit belongs to `paved` or its controller. The function accepts it at every revision.
    Elsewhere,
    /// A limit of a later revision. Under earlier revisions, the environment is rejected with the
    /// line to change, and a running one has a warning and a condition.
    Later,
    /// Like `Later`, and under the later revision the limit changes resources or the status.
    LaterApplied,
    /// Like `Later`, and under the later revision the environment is rejected, because its ttl is
    /// longer than the maximum.
    LaterMaximum,
    /// A field of the spec. Under earlier revisions, new and running environments have a warning
    /// and a condition. Under the later revision, it changes resources or the status.
    Wish,
}

pub struct Row {
    /// The field in the schema.
    pub path: String,
    pub rule: Rule,
    pub world: World,
    /// The fields that the row adds to the input and to the spec.
    pub input: Value,
    pub spec: Value,
    /// The beginning of the message under an earlier revision, or of a rejected value.
    pub message: String,
}

pub fn merge(into: &mut Value, fields: &Value) {
    crossplane::object::merge(into.as_object_mut().unwrap(), fields.as_object().unwrap().clone());
}

/// The namespace of an environment's user.
fn namespace(world: &World) -> String {
    let claim = &world.xr["spec"]["claimRef"]["namespace"];
    claim.as_str().or(world.xr["metadata"]["namespace"].as_str()).unwrap().to_owned()
}

/// A path of Settings with one value.
fn at(path: &str, value: Value) -> Value {
    path.split('.').rev().fold(value, |inner, key| json!({key: inner}))
}

/// The rows, each for the claims API and for the namespaced API.
#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn add(
        &mut self,
        api: &str,
        path: &str,
        rule: Rule,
        input: &Value,
        spec: &Value,
        message: &str,
    ) {
        let row = |world| Row {
            path: path.to_owned(),
            rule,
            input: input.clone(),
            spec: spec.clone(),
            message: message.to_owned(),
            world,
        };
        self.0.extend(main_examples(api).into_iter().map(row));
    }

    /// A limit with this value, for an environment like the example.
    fn limit(&mut self, api: &str, path: &str, rule: Rule, value: Value, message: &str) {
        self.add(api, path, rule, &at(path, value), &json!({}), message);
    }

    /// Limits of one API.
    fn own(&mut self) {
        let gpu = "gpu-workspace";
        self.limit(
            gpu,
            "gpuWorkspace.instanceTypes",
            Rule::Value,
            json!(["g5.xlarge"]),
            "spec.parameters.instanceType: found \"g4dn.xlarge\"; allowed: g5.xlarge",
        );
        self.limit(
            gpu,
            "gpuWorkspace.allowedCidrsWithin",
            Rule::Value,
            json!(["10.0.0.0/8"]),
            "spec.parameters.allowedCidrs[0]: found 203.0.113.0/24; allowed: networks within \
             10.0.0.0/8",
        );
        let boundary = json!("arn:aws:iam::123456789012:policy/limit");
        self.limit(gpu, "gpuWorkspace.permissionsBoundary", Rule::Applied, boundary, "");
        let cluster = "virtual-environment";
        self.limit(
            cluster,
            "environment.chartRepositories",
            Rule::Value,
            json!(["https://charts.acme.io/team"]),
            "spec.parameters.app.chart.repository: found \
             \"https://stefanprodan.github.io/podinfo\"; ",
        );
        let exposed = json!({"parameters": {"expose": "loadBalancer"}});
        let path = "environment.exposeAllowed";
        let message = "spec.parameters.expose: found \"loadBalancer\"; allowed: cluster";
        self.add(cluster, path, Rule::Value, &at(path, json!(false)), &exposed, message);
        let path = "environment.allowedCidrs";
        let networks = at(path, json!(["192.0.2.0/24"]));
        self.add(cluster, path, Rule::Applied, &networks, &exposed, "");
        let path = "unifiedEnvironment.rds.maxAllocatedStorage";
        self.limit("unified-environment", path, Rule::Elsewhere, json!(200), "");
    }

    /// The lifecycle in the Settings of an API.
    fn lifecycle_of_settings(&mut self, api: &str, section: &str) {
        let (none, hour) = (json!({}), json!({"lifecycle": {"ttl": "1h"}}));
        let long = json!({"lifecycle": {"ttl": "9h"}});
        for (field, rule, value, spec) in [
            ("ttl", Rule::LaterApplied, "8h", &none),
            ("maximum", Rule::LaterApplied, "8h", &hour),
            ("maximum", Rule::LaterMaximum, "8h", &long),
            ("onExpiry", Rule::LaterApplied, "Delete", &hour),
            ("keepStoppedFor", Rule::Later, "8h", &hour),
        ] {
            let path = format!("{section}.lifecycle.{field}");
            let message = format!("settings.{path}: has no effect, because ");
            self.add(api, &path, rule, &at(&path, json!(value)), spec, &message);
        }
    }

    /// Limits of all APIs.
    fn common(&mut self, api: &str) {
        let budget = "settings.budget: has no effect, because ";
        self.limit(api, "budget.defaultHourlyUSD", Rule::Later, json!("1"), budget);
        let namespaces: BTreeSet<String> = main_examples(api).iter().map(namespace).collect();
        let budgets: Value = namespaces.into_iter().map(|name| (name, json!("1"))).collect();
        self.limit(api, "budget.byNamespace", Rule::Later, budgets, budget);
        let message = "settings.minimumSchemaRevision: found schemaRevision ";
        self.limit(api, "minimumSchemaRevision", Rule::Later, json!(LIFECYCLE), message);
        self.limit(api, "controller.deletionsPerHour", Rule::Elsewhere, json!(0), "");
        let from = json!({"settingsFrom": {"name": "gone", "optional": false}});
        let message = "settings.settingsFrom.name: found \"gone\"";
        self.add(api, "settingsFrom.optional", Rule::Value, &from, &json!({}), message);
    }

    /// The lifecycle in the spec of an API.
    fn lifecycle_of_spec(&mut self, api: &dyn AnyApi) {
        let name = api.info().name;
        let (none, hour) = (json!({}), json!({"lifecycle": {"ttl": "1h"}}));
        let example = main_examples(name)[0].xr["spec"].clone();
        let cannot_stop = api.cannot_stop(&example, &Settings::default()).is_some();
        for (field, value, beside) in [
            ("ttl", "1h", &none),
            ("onExpiry", "Delete", &hour),
            ("keepStoppedFor", "8h", &hour),
            ("power", "Stopped", &none),
        ] {
            // An environment that cannot be stopped rejects a stop, or ignores it with a warning.
            if cannot_stop && ["keepStoppedFor", "power"].contains(&field) {
                continue;
            }
            let mut spec = beside.clone();
            merge(&mut spec, &json!({"lifecycle": {field: value}}));
            let path = format!("spec.lifecycle.{field}");
            let message = format!("{path}: has no effect, because ");
            self.add(name, &path, Rule::Wish, &none, &spec, &message);
        }
    }
}

pub fn rows() -> Vec<Row> {
    let mut table = Table::default();
    table.own();
    for api in apis::APIS {
        table.lifecycle_of_settings(api.info().name, api.info().settings);
        table.common(api.info().name);
        table.lifecycle_of_spec(*api);
    }
    table.0
}
