//! Files that are generated from the types: XRDs, Compositions, the input's CRD and the reference.

pub mod argocd;
pub mod installation;
pub mod namespaces;
pub mod policy;
mod reference;
pub mod rights;

use crossplane::{api_version, names::dns_label};
use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::apis::{APIS, AnyApi, Flavour, Info, Names};
use crate::request::SETTINGS_AT_FIRST;
use crate::settings::{self, Common};
use crate::status::CommonStatus;
use crate::value::Object;

pub use reference::{reference, settings_reference};

pub use crate::settings::SCHEMA_REVISION;

/// Version of the APIs.
pub const VERSION: &str = "v1alpha1";

/// The registry of the releases, with the path of all packages. Set it here only, and then run
/// `cargo xtask generate`, which writes it into manifests, examples, the chart and documents.
pub const REGISTRY: &str = "registry.example.org/paved-road";

/// Name of the installed Function that the Compositions refer to.
pub const FUNCTION: &str = "function-paved-road";

/// The name of the Function that Crossplane installs from a registry as a dependency of a
/// Configuration. The chart uses the same name.
pub fn installed_function(registry: &str) -> String {
    let path = registry.split_once('/').map_or("", |(_, path)| path);
    dns_label(&format!("{path}/{FUNCTION}"))
}

/// The name of an API's Configuration: `configuration-gpu-workspace-claims`.
pub fn configuration(api: &dyn AnyApi, flavour: Flavour) -> String {
    format!("configuration-{}-{flavour}", api.info().name)
}

/// Name of the EnvironmentConfig with the settings of the packaged Compositions.
pub const ENVIRONMENT_CONFIG: &str = "paved-road";

/// The `apiVersion` of the kinds in an API group.
pub fn api_version(group: &str) -> String {
    format!("{group}/{VERSION}")
}

/// The CompositeResourceDefinition of an API: v1 with claims, or v2.
pub fn xrd(api: &dyn AnyApi, flavour: Flavour, group: &str) -> Value {
    let info = api.info();
    let composite = names(info, flavour);
    let mut spec = json!({
        "group": group,
        "names": naming(composite, flavour == Flavour::Namespaced),
        "versions": [{
            "name": VERSION,
            "served": true,
            "referenceable": true,
            "additionalPrinterColumns": columns(info),
            "schema": {"openAPIV3Schema": schema(api)},
        }],
    });
    let api_version = match flavour {
        Flavour::Claims => {
            spec["claimNames"] = naming(&info.claim, true);
            if !info.connection_keys.is_empty() {
                spec["connectionSecretKeys"] = json!(info.connection_keys);
            }
            spec["defaultCompositeDeletePolicy"] = json!("Foreground");
            "apiextensions.crossplane.io/v1"
        }
        Flavour::Namespaced => {
            spec["scope"] = json!("Namespaced");
            "apiextensions.crossplane.io/v2"
        }
    };
    json!({
        "apiVersion": api_version,
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("{}.{group}", composite.plural)},
        "spec": spec,
    })
}

/// The Composition that is installed. It takes its settings from an EnvironmentConfig.
pub fn composition(api: &dyn AnyApi, flavour: Flavour, group: &str) -> Value {
    installed_composition(api, flavour, group, FUNCTION)
}

/// Like [`composition`], for a Function that was installed under another name.
pub fn installed_composition(
    api: &dyn AnyApi,
    flavour: Flavour,
    group: &str,
    function: &str,
) -> Value {
    let settings = json!({"settingsFrom": {"name": ENVIRONMENT_CONFIG}});
    let mut composition = composition_with(api, flavour, group, settings);
    let step = &mut composition["spec"]["pipeline"][0];
    step["functionRef"]["name"] = json!(function);
    // Crossplane 1.20, which serves claims, does not know the field.
    if flavour == Flavour::Namespaced {
        step["requirements"] = json!({"requiredResources": [{
            "requirementName": SETTINGS_AT_FIRST,
            "apiVersion": "apiextensions.crossplane.io/v1beta1",
            "kind": "EnvironmentConfig",
            "name": ENVIRONMENT_CONFIG,
        }]});
    }
    composition
}

/// The fields that only a step's input has, and not the data of an EnvironmentConfig.
pub const INPUT_ONLY: [&str; 5] =
    ["apiVersion", "kind", "metadata", "schemaRevision", "settingsFrom"];

/// The EnvironmentConfig with the settings of the installed Compositions. Its data leaves out the
/// fields that only a step's input has.
pub fn environment_config(mut settings: Object) -> Value {
    for own in INPUT_ONLY {
        settings.remove(own);
    }
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": ENVIRONMENT_CONFIG},
        "data": settings,
    })
}

/// Checks the name of a company's own API group.
pub fn group(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(fit)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let fits = text.len() <= 200 && text.contains('.') && text.split('.').all(is_label);
    if fits {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?}: allowed: a lowercase domain, for example platform.example.org"))
    }
}

/// The Composition of the examples. It has its settings in the step's input.
pub fn example_composition(api: &dyn AnyApi, flavour: Flavour, group: &str) -> Value {
    let mut section = api.example_settings();
    prune(&mut section);
    composition_with(api, flavour, group, json!({api.info().settings: section}))
}

fn composition_with(api: &dyn AnyApi, flavour: Flavour, group: &str, settings: Value) -> Value {
    let info = api.info();
    let composite = names(info, flavour);
    let mut input = json!({
        "apiVersion": settings::API_VERSION,
        "kind": settings::KIND,
        "schemaRevision": SCHEMA_REVISION,
    });
    if let (Some(input), Value::Object(settings)) = (input.as_object_mut(), settings) {
        input.extend(settings);
    }
    let mut spec = json!({
        "compositeTypeRef": {"apiVersion": api_version(group), "kind": composite.kind},
        "mode": "Pipeline",
        "pipeline": [{"step": "compose", "functionRef": {"name": FUNCTION}, "input": input}],
    });
    if flavour == Flavour::Claims {
        spec["writeConnectionSecretsToNamespace"] = json!("crossplane-system");
    }
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {
            "name": format!("{}.{group}", composite.plural),
            "labels": {"provider": info.provider},
        },
        "spec": spec,
    })
}

/// The released Function, for renders that start its image.
pub fn function() -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": FUNCTION},
        "spec": {"package": format!("{REGISTRY}/{FUNCTION}:v{}", env!("CARGO_PKG_VERSION"))},
    })
}

/// The Function for renders that call a process on this machine.
pub fn local_function() -> Value {
    let mut function = function();
    function["metadata"]["annotations"] = json!({
        "render.crossplane.io/runtime": "Development",
        "render.crossplane.io/runtime-development-target": "127.0.0.1:9443",
    });
    function
}

/// The CRD of the step's input.
pub fn input() -> Value {
    let mut generator = generator();
    let mut schema = structural(Common::json_schema(&mut generator));
    if let Some(properties) = schema["properties"].as_object_mut() {
        for api in APIS {
            let mut section = structural(api.settings_schema(&mut generator));
            section["description"] = json!(format!("Settings of the API {}.", api.info().title));
            properties.insert(api.info().settings.to_owned(), section);
        }
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), json!({"type": "object"}));
    }
    schema["description"] = json!("What the platform team decides.");
    let group = api_version::group(settings::API_VERSION);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("settings.{group}")},
        "spec": {
            "group": group,
            "names": {
                "categories": ["crossplane"],
                "kind": settings::KIND,
                "listKind": "SettingsList",
                "plural": "settings",
                "singular": "settings",
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1beta1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// The names of an API's composite in the claims API or the namespaced API.
pub fn names(info: &'static Info, flavour: Flavour) -> &'static Names {
    match flavour {
        Flavour::Claims => &info.composite,
        Flavour::Namespaced => &info.namespaced,
    }
}

/// `kubectl get paved` lists the objects that people create: claims, or namespaced composites.
fn naming(names: &Names, for_people: bool) -> Value {
    let mut naming =
        json!({"kind": names.kind, "plural": names.plural, "singular": names.singular});
    if for_people {
        naming["categories"] = json!(["paved"]);
    }
    if !names.short.is_empty() {
        naming["shortNames"] = json!(names.short);
    }
    naming
}

fn columns(info: &Info) -> Value {
    const COMMON: [(&str, &str, &str); 3] = [
        ("Phase", ".status.phase", "string"),
        ("Progress", ".status.progress", "string"),
        ("Reason", ".status.conditions[?(@.type=='Provisioned')].reason", "string"),
    ];
    let column = |(name, path, kind): &(&str, &str, &str)| json!({"name": name, "type": kind, "jsonPath": path});
    info.columns.iter().chain(&COMMON).map(column).collect()
}

/// The schema of `spec` and `status`, for the API server's validation.
fn schema(api: &dyn AnyApi) -> Value {
    let mut generator = generator();
    let spec = structural(api.spec_schema(&mut generator));
    let mut status = structural(api.status_schema(&mut generator));
    let common = structural(CommonStatus::json_schema(&mut generator));
    if let (Some(status), Value::Object(common)) =
        (status["properties"].as_object_mut(), common["properties"].clone())
    {
        for (field, schema) in common {
            status.entry(field).or_insert(schema);
        }
    }
    // No field of status is required: a new environment has not been observed yet.
    if let Some(status) = status.as_object_mut() {
        status.remove("required");
    }
    json!({"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}})
}

/// A generator of schemas in the form that Kubernetes accepts: inline and structural.
fn generator() -> SchemaGenerator {
    SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
}

fn structural(mut schema: Schema) -> Value {
    use schemars::transform::Transform as _;
    AddNullable::default().transform(&mut schema);
    StructuralSchemaRewriter.transform(&mut schema);
    OptionalEnum.transform(&mut schema);
    OptionalIntOrString.transform(&mut schema);
    let mut schema = schema.to_value();
    tidy(&mut schema);
    schema
}

/// Removes keys that Kubernetes does not know, and keys without meaning for us. An absent field and
/// a null field are the same to us.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(inner)) = fields.get("anyOf").and_then(optional) {
                fields.remove("anyOf");
                for (key, value) in inner {
                    fields.entry(key).or_insert(value);
                }
            }
            if let Some(names) = fields.get("oneOf").and_then(constants) {
                fields.remove("oneOf");
                fields.insert("type".to_owned(), json!("string"));
                fields.insert("enum".to_owned(), names);
            }
            if fields.get("type").is_some_and(Value::is_string) {
                for key in ["nullable", "title", "$schema", "additionalProperties"] {
                    if fields.get(key).is_some_and(|value| !value.is_object()) {
                        fields.remove(key);
                    }
                }
                if fields
                    .get("format")
                    .and_then(Value::as_str)
                    .is_some_and(|format| format.starts_with('u'))
                {
                    fields.remove("format");
                }
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The names of an enumeration with one description for each variant.
fn constants(variants: &Value) -> Option<Value> {
    variants
        .as_array()?
        .iter()
        .map(|variant| variant.get("const").filter(|name| name.is_string()).cloned())
        .collect()
}

/// The schema in a union with null.
fn optional(variants: &Value) -> Option<Value> {
    let is_null = |variant: &Value| {
        variant.get("nullable") == Some(&json!(true)) && variant.get("type").is_none()
    };
    match variants.as_array()?.as_slice() {
        [schema, null] | [null, schema] if is_null(null) => Some(schema.clone()),
        _ => None,
    }
}

/// Removes empty maps, empty lists and nulls from an example.
fn prune(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.values_mut().for_each(prune);
        fields.retain(|_, value| {
            let empty = value.as_object().is_some_and(Object::is_empty)
                || value.as_array().is_some_and(Vec::is_empty);
            !(empty || value.is_null())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_domain() {
        assert!(group("platform.example.org").is_ok());
        for bad in ["", "platform", "Platform.example.org", "a..b", "-a.b", "a.b-", "a.b/c"] {
            assert!(group(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn environment_config_holds_the_platform_teams_settings() {
        let Value::Object(settings) = json!({
            "apiVersion": settings::API_VERSION, "kind": settings::KIND, "schemaRevision": 1, "tags": {"team": "a"},
        }) else {
            unreachable!()
        };
        assert_eq!(environment_config(settings)["data"], json!({"tags": {"team": "a"}}));
    }
}
