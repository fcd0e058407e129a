//! Names that clusters store, or that users and programs use, collected from every example and
//! variant. A release may add a name. It never changes or removes one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use function_paved_road::diagnosis::Code;
use function_paved_road::reason::Reason;
use function_proto::v1::RunFunctionResponse;
use schemars::JsonSchema;
use serde_json::{Value, json};
use support::virtual_environment::{earlier, with_earlier_app};
use support::{simulated, world};

/// The values of an enumeration, by its schema.
fn values<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T);
    let variants = schema.get("oneOf").and_then(Value::as_array).expect("a comment for each value");
    variants.iter().map(|variant| variant["const"].as_str().unwrap().to_owned()).collect()
}

/// Names by their group, for example `slots of gpu-workspace`.
#[derive(Default)]
struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    fn add(&mut self, group: &str, name: impl Into<String>) {
        self.0.entry(group.to_owned()).or_default().insert(name.into());
    }

    fn add_response(&mut self, api: &str, response: &RunFunctionResponse) {
        let slots = format!("slots of {api}");
        for (slot, object) in world::desired(response) {
            // The rest of the slot is the id of a machine.
            let is_power = slot.starts_with("power-i-");
            self.add(&slots, if is_power { "power-…".to_owned() } else { slot });
            self.add_metadata(&object.into());
        }
        let desired = response.desired.clone().unwrap_or_default();
        for key in
            desired.composite.iter().flat_map(|composite| composite.connection_details.keys())
        {
            self.add(&format!("connection keys of {api}"), key);
        }
        let status = world::status(response);
        self.add("phases", status["phase"].as_str().unwrap_or_default());
        for line in status["resources"].as_array().into_iter().flatten() {
            self.add("reasons of composed resources", line["reason"].as_str().unwrap_or("(none)"));
        }
        for field in status.as_object().into_iter().flatten().map(|(field, _)| field) {
            self.add(&format!("status of {api}"), field);
        }
        for condition in &response.conditions {
            self.add("conditions", format!("{} {}", condition.r#type, condition.reason));
        }
        for result in &response.results {
            self.add("events", result.reason());
        }
    }

    /// Keys of labels and annotations, also those of objects inside objects.
    fn add_metadata(&mut self, value: &Value) {
        match value {
            Value::Object(object) => {
                for (field, value) in object {
                    if let ("labels" | "annotations" | "matchLabels", Value::Object(keys)) =
                        (field.as_str(), value)
                    {
                        keys.keys().for_each(|key| self.add(field, key));
                    }
                    self.add_metadata(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_metadata(item)),
            _ => {}
        }
    }
}

#[test]
fn composed_names_are_those_of_the_last_release() {
    let mut names = Names::default();
    for case in simulated::all() {
        for world in [case.world(), case.settled()] {
            names.add_response(case.api().info().name, &case.call(&world));
        }
        let mut stopped = case.settled();
        stopped.composite_mut()["spec"]["lifecycle"] = json!({"power": "Stopped", "ttl": "8h"});
        let response = case.call(&stopped);
        if !world::is_fatal(&response) {
            names.add_response(case.api().info().name, &response);
        }
    }
    for example in support::examples() {
        names.add_response(example.api.info().name, &support::answer(example.request()));
    }
    // Apps of v0.1.0 keep their slot, and managed clusters of earlier releases keep their Usages.
    let apps = ["vcluster", "gke"].into_iter().flat_map(with_earlier_app);
    for world in apps.chain(earlier("gke")) {
        names.add_response(world.api().info().name, &world.answer());
    }
    for code in values::<Code>() {
        names.add("cause codes", code);
    }
    for reason in values::<Reason>() {
        names.add("reasons", reason);
    }
    for code in Code::REJECTIONS {
        names.add("reasons", code.to_string());
    }
    let mut text = String::new();
    for (group, names) in names.0 {
        writeln!(text, "{group}:").unwrap();
        for name in names {
            writeln!(text, "  {name}").unwrap();
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("names", text));
}
