//! Reduces a CRD's schema to a shape.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::shape::Shape;

/// Differences between a model and a CRD, as paths.
#[derive(Debug, Default, PartialEq)]
pub struct Gaps {
    /// Fields of the model that the CRD lacks. References have namespaces only in one of the two
    /// CRDs of a kind.
    pub missing: BTreeSet<String>,
    /// Fields with different types in the model and the CRD, with both types.
    pub wrong: Vec<String>,
}

/// Reduces the schema of a managed resource: `spec.forProvider` and `status.atProvider`. The rest
/// stays whole. `initial` keeps `spec.initProvider` with the fields of `for_provider`.
pub fn managed(
    schema: &Value,
    for_provider: &Shape,
    at_provider: &Shape,
    initial: bool,
    gaps: &mut Gaps,
) -> Value {
    let mut schema = without_prose(schema);
    if let Some(spec) = schema.pointer_mut("/properties/spec") {
        envelope(spec, for_provider, initial, gaps);
    }
    if let Some(status) = schema.pointer_mut("/properties/status/properties/atProvider") {
        cut(status, at_provider, "status.atProvider", gaps);
    }
    drop_dangling_rules(&mut schema);
    schema
}

/// Records fields that we set in `spec` beside `forProvider` and that the CRD lacks. [`managed`]
/// keeps existing ones whole.
pub fn require(schema: &Value, beside: &[&str], gaps: &mut Gaps) {
    let properties = &schema["properties"]["spec"]["properties"];
    let lacking = beside.iter().filter(|name| properties.get(**name).is_none());
    gaps.wrong.extend(lacking.map(|name| format!("spec.{name}: the CRD has no such field")));
}

/// The same schema without its descriptions.
pub fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let prose = |name: &str, value: &Value| name == "description" && value.is_string();
            let kept = object.iter().filter(|(name, value)| !prose(name, value));
            kept.map(|(name, value)| (name.clone(), without_prose(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_prose).collect(),
        scalar => scalar.clone(),
    }
}

/// Providers require fields by rules on the spec, such as "in forProvider or in initProvider". A
/// field in a rule stays in both, because the rule would not compile without it. The rest of
/// initProvider is removed, unless we set it (`whole`).
fn envelope(spec: &mut Value, for_provider: &Shape, whole: bool, gaps: &mut Gaps) {
    let paths: Vec<_> = rules(spec).flat_map(paths).collect();
    let named = |parent: &str| -> BTreeSet<String> {
        paths
            .iter()
            .filter(|path| path[0] == parent)
            .filter_map(|path| path.get(1).cloned())
            .collect()
    };
    let (demanded, mut initial) = (named("forProvider"), named("initProvider"));
    if whole {
        let fields = spec.pointer("/properties/initProvider/properties").and_then(Value::as_object);
        initial.extend(fields.into_iter().flatten().map(|(name, _)| name.clone()));
    }
    let for_provider = for_provider.with(&demanded);
    let Some(properties) = spec.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(schema) = properties.get_mut("forProvider") {
        cut(schema, &for_provider, "spec.forProvider", gaps);
    }
    if initial.is_empty() {
        properties.remove("initProvider");
    } else if let Some(schema) = properties.get_mut("initProvider") {
        cut(schema, &for_provider.only(&initial), "spec.initProvider", gaps);
    }
}

fn cut(schema: &mut Value, shape: &Shape, path: &str, gaps: &mut Gaps) {
    let free_form = schema["x-kubernetes-preserve-unknown-fields"] == true;
    match shape {
        Shape::Any => {}
        _ if free_form && schema.get("properties").is_none() => {}
        Shape::Scalar(wanted) => {
            let given = schema["type"].as_str().unwrap_or_default();
            let same = given == wanted
                || (given == "number" && wanted == "integer")
                || schema["x-kubernetes-int-or-string"] == true;
            if !same {
                gaps.wrong(path, wanted, schema);
            }
        }
        // We send a provider's values in list entries back with the entries. So the entries stay
        // whole.
        Shape::List(item) => match schema.get("items") {
            Some(items) => cut(&mut items.clone(), item, &format!("{path}[]"), gaps),
            None => gaps.wrong(path, "array", schema),
        },
        Shape::Map(value) => match schema.get_mut("additionalProperties") {
            Some(values) => cut(values, value, &format!("{path}.*"), gaps),
            None => gaps.wrong(path, "map", schema),
        },
        Shape::Fields(fields) => cut_fields(schema, fields, path, gaps),
    }
}

fn cut_fields(schema: &mut Value, fields: &BTreeMap<String, Shape>, path: &str, gaps: &mut Gaps) {
    let required = strings(&schema["required"]);
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return gaps.wrong(path, "object with fields", schema);
    };
    properties.retain(|name, _| fields.contains_key(name) || required.contains(name));
    for (name, shape) in fields {
        let path = format!("{path}.{name}");
        match properties.get_mut(name) {
            Some(schema) => cut(schema, shape, &path, gaps),
            None => _ = gaps.missing.insert(path),
        }
    }
}

impl Gaps {
    fn wrong(&mut self, path: &str, wanted: &str, schema: &Value) {
        let given = schema["type"].as_str().unwrap_or("a field without a type");
        self.wrong.push(format!("{path}: {wanted} in the model, {given} in the CRD"));
    }
}

/// Removes rules about removed fields.
fn drop_dangling_rules(schema: &mut Value) {
    const RULES: &str = "x-kubernetes-validations";
    if let Some(Value::Array(mut rules)) =
        schema.as_object_mut().and_then(|object| object.remove(RULES))
    {
        rules.retain(|rule| {
            paths(rule["rule"].as_str().unwrap_or_default()).iter().all(|p| has(schema, p))
        });
        if !rules.is_empty() {
            schema[RULES] = Value::Array(rules);
        }
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(drop_dangling_rules),
        Value::Array(items) => items.iter_mut().for_each(drop_dangling_rules),
        _ => {}
    }
}

fn rules(schema: &Value) -> impl Iterator<Item = &str> {
    let rules = schema["x-kubernetes-validations"].as_array().map_or(&[][..], Vec::as_slice);
    rules.iter().filter_map(|rule| rule["rule"].as_str())
}

/// The fields that a CEL rule reads: `a.b` for `has(self.a.b)`. A call ends a path.
fn paths(rule: &str) -> Vec<Vec<String>> {
    let after_self = rule.match_indices("elf.").map(|(at, found)| &rule[at + found.len()..]);
    let paths = after_self.map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        let (path, next) = rest.split_at(end.unwrap_or(rest.len()));
        let mut path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if next.starts_with('(') {
            path.pop();
        }
        path
    });
    paths.filter(|path| !path.is_empty()).collect()
}

/// Whether the schema declares the field, or allows any field.
fn has(schema: &Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => properties.get(first).is_some_and(|field| has(field, rest)),
        None => true,
    }
}

fn strings(value: &Value) -> BTreeSet<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        let fields = json!({
            "name": { "type": "string", "description": "Its name." },
            "size": { "type": "number" },
            "role": { "type": "string" },
            "zone": { "type": "string" },
        });
        json!({ "properties": { "spec": {
            "properties": {
                "forProvider": { "type": "object", "required": ["zone"], "properties": fields,
                    "x-kubernetes-validations": [{ "rule": "has(self.size)" }, { "rule": "has(self.name)" }] },
                "initProvider": { "type": "object", "properties": fields },
                "deletionPolicy": { "type": "string" },
            },
            "x-kubernetes-validations": [
                { "rule": "has(self.forProvider.role) || (has(self.initProvider) && has(self.initProvider.role))" },
            ],
        }, "status": { "properties": { "atProvider": { "properties": { "id": { "type": "string" } } } } } } })
    }

    fn model(fields: &[(&str, &str)]) -> Shape {
        let fields = fields
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), Shape::Scalar((*kind).to_owned())));
        Shape::Fields(fields.collect())
    }

    #[test]
    fn modelled_and_required_fields_stay_with_their_rules() {
        let mut gaps = Gaps::default();
        let cut = managed(&schema(), &model(&[("name", "string")]), &model(&[]), false, &mut gaps);
        let (name, role) = (json!({ "type": "string" }), json!({ "type": "string" }));
        assert_eq!(gaps, Gaps::default());
        assert_eq!(
            cut["properties"]["spec"]["properties"]["forProvider"],
            json!({ "type": "object", "required": ["zone"], "properties": { "name": name, "role": role, "zone": role },
                "x-kubernetes-validations": [{ "rule": "has(self.name)" }] })
        );
        let initial = &cut["properties"]["spec"]["properties"]["initProvider"];
        assert_eq!(initial["properties"], json!({ "role": role }));
        assert_eq!(
            cut["properties"]["spec"]["x-kubernetes-validations"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(
            cut["properties"]["status"]["properties"]["atProvider"]["properties"],
            json!({})
        );
    }

    #[test]
    fn missing_crd_field_is_named() {
        let mut gaps = Gaps::default();
        let model = model(&[("size", "string"), ("colour", "string")]);
        managed(&schema(), &model, &Shape::Any, false, &mut gaps);
        assert_eq!(gaps.missing, BTreeSet::from(["spec.forProvider.colour".to_owned()]));
        assert_eq!(gaps.wrong, ["spec.forProvider.size: string in the model, number in the CRD"]);
    }

    #[test]
    fn field_beside_for_provider_stays_whole_and_must_exist() {
        let mut schema = schema();
        let readiness = json!({ "properties": { "policy": { "type": "string", "enum": ["AllTrue"] } },
            "x-kubernetes-validations": [{ "rule": "has(self.policy)" }] });
        schema["properties"]["spec"]["properties"]["readiness"] = readiness.clone();
        let mut gaps = Gaps::default();
        require(&schema, &["readiness", "watch"], &mut gaps);
        assert_eq!(gaps.wrong, ["spec.watch: the CRD has no such field"]);
        let cut = managed(&schema, &model(&[]), &model(&[]), false, &mut gaps);
        assert_eq!(cut["properties"]["spec"]["properties"]["readiness"], readiness);
    }

    #[test]
    fn list_entries_stay_whole_and_need_the_fields_of_the_model() {
        let entry =
            json!({ "properties": { "id": { "type": "string" }, "found": { "type": "string" } } });
        let mut schema = schema();
        schema["properties"]["spec"]["properties"]["forProvider"]["properties"]["list"] =
            json!({ "type": "array", "items": entry });
        let list = Shape::List(Box::new(model(&[("id", "string"), ("colour", "string")])));
        let mut gaps = Gaps::default();
        let model = Shape::Fields(BTreeMap::from([("list".to_owned(), list)]));
        let cut = managed(&schema, &model, &Shape::Any, false, &mut gaps);
        assert_eq!(gaps.missing, BTreeSet::from(["spec.forProvider.list[].colour".to_owned()]));
        let list = &cut["properties"]["spec"]["properties"]["forProvider"]["properties"]["list"];
        assert_eq!(list["items"], entry);
    }

    #[test]
    fn a_rule_reads_the_paths_after_self() {
        let read = paths("self.a.b.startsWith('x') && has(oldSelf.c) || self == oldSelf");
        assert_eq!(read, [vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]]);
    }

    #[test]
    fn prose_is_removed_and_fields_called_description_are_kept() {
        let schema = json!({ "description": "Words.", "properties": { "description": { "type": "string" } } });
        assert_eq!(
            without_prose(&schema),
            json!({ "properties": { "description": { "type": "string" } } })
        );
    }
}
