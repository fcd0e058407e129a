//! The reference of the APIs and of Settings, in Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use super::{api_version, input, names, xrd};
use crate::apis::{APIS, AnyApi, Flavour};

/// `docs/reference/apis.md`: the fields of every API.
pub fn reference() -> String {
    let mut page = String::from(
        "<!-- Generated from the types by `cargo xtask generate`. -->\n\n# Reference\n\n\
         Every field of every API. [Settings](settings.md) has the platform team's fields.\n",
    );
    for api in APIS {
        describe(&mut page, *api);
    }
    page
}

/// The table of `docs/reference/settings.md`: every field of Settings.
pub fn settings_reference() -> String {
    let input = input();
    let mut fields = String::new();
    table(&mut fields, &input["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    fields
}

fn describe(page: &mut String, api: &dyn AnyApi) {
    let info = api.info();
    let (claims, namespaced) =
        (Flavour::Claims.default_group(), Flavour::Namespaced.default_group());
    let title = info.heading();
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "\n## {title}\n\n{}\n\n| flavour | `apiVersion` | kind to apply | composite |\n|---|---|---|---|\n\
         | claims | `{}` | `{}` | `{}` |\n| namespaced | `{}` | `{}` | the same |\n\n### Spec\n",
        info.summary,
        api_version(claims),
        info.claim.kind,
        names(info, Flavour::Claims).kind,
        api_version(namespaced),
        names(info, Flavour::Namespaced).kind,
    );
    let xrd = xrd(api, Flavour::Claims, claims);
    let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    table(page, &schema["spec"]);
    page.push_str("\n### Status\n\n");
    table(page, &schema["status"]);
    let keys: Vec<String> = info.connection_keys.iter().map(|key| format!("`{key}`")).collect();
    if !keys.is_empty() {
        let _ = writeln!(page, "\nConnection details: {}.", keys.join(", "));
    }
}

fn table(page: &mut String, schema: &Value) {
    page.push_str("| field | type | default | meaning |\n|---|---|---|---|\n");
    rows(page, "", schema);
}

fn rows(page: &mut String, prefix: &str, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, field) in properties {
        if ["apiVersion", "kind", "metadata"].contains(&name.as_str()) && prefix.is_empty() {
            continue;
        }
        let path = format!("{prefix}{name}");
        let required = schema["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|entry| entry == name));
        let default = match &field["default"] {
            Value::Null if required => "**required**".to_owned(),
            Value::Null | Value::Object(_) => String::new(),
            value => format!("`{value}`"),
        };
        let description = field["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ")
            .replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{path}` | {} | {default} | {description}{} |",
            kind(field),
            limits(field)
        );
        rows(page, &format!("{path}."), field);
        rows(page, &format!("{path}[]."), &field["items"]);
        rows(page, &format!("{path}.\\<name\\>."), &field["additionalProperties"]);
    }
}

fn kind(field: &Value) -> String {
    match field["type"].as_str() {
        Some("array") => format!("list of {}", kind(&field["items"])),
        Some("object") if field["additionalProperties"].is_object() => {
            format!("map of {}", kind(&field["additionalProperties"]))
        }
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// Ranges and enumerations, as a sentence.
fn limits(field: &Value) -> String {
    let mut limits = String::new();
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> =
            values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect();
        let _ = write!(limits, " One of {}.", values.join(", "));
    }
    match (&field["minimum"], &field["maximum"]) {
        (Value::Null, Value::Null) => {}
        (least, Value::Null) => drop(write!(limits, " At least {least}.")),
        (Value::Null, most) => drop(write!(limits, " At most {most}.")),
        (least, most) => drop(write!(limits, " {least} to {most}.")),
    }
    limits
}
