//! Reads definitions from documents. CRDs are used unchanged. XRDs get the fields that Crossplane
//! adds.
//!
//! The added fields are those of `pkg/xcrd` of crossplane-runtime v2.3.3. Crossplane 2.3.4 creates
//! its CRDs with that package.

use crossplane::Scope;
use crossplane::json::{at, text};
use serde_json::{Map, Value, json};

use super::{Definition, Role, SchemaError};

/// The definitions in a document: one for each served version, and for an XRD also for each role.
pub(super) fn definitions(document: &Value) -> Result<Vec<Definition>, SchemaError> {
    let name = text(document, &["metadata", "name"]).unwrap_or_default().to_owned();
    let api_version = text(document, &["apiVersion"]).unwrap_or_default();
    match text(document, &["kind"]).unwrap_or_default() {
        "CustomResourceDefinition" if api_version.starts_with("apiextensions.k8s.io/") => {
            Reader { document, name }.crd()
        }
        "CompositeResourceDefinition"
            if api_version.starts_with("apiextensions.crossplane.io/") =>
        {
            Reader { document, name }.xrd()
        }
        kind => Err(SchemaError::NotADefinition { kind: kind.to_owned(), name }),
    }
}

struct Reader<'a> {
    document: &'a Value,
    name: String,
}

impl Reader<'_> {
    fn crd(&self) -> Result<Vec<Definition>, SchemaError> {
        let kind = self.text(&["spec", "names", "kind"])?;
        let namespaced = self.text(&["spec", "scope"])? == "Namespaced";
        self.versions(|api_version, schema| {
            vec![Definition::new(
                api_version,
                kind.clone(),
                Role::Resource,
                namespaced,
                schema.clone(),
            )]
        })
    }

    fn xrd(&self) -> Result<Vec<Definition>, SchemaError> {
        let kind = self.text(&["spec", "names", "kind"])?;
        let claim = text(self.document, &["spec", "claimNames", "kind"]);
        let scope = Scope::from_xrd(self.document);
        let update_policy = at(self.document, &["spec", "defaultCompositionUpdatePolicy"]);
        let delete_policy = at(self.document, &["spec", "defaultCompositeDeletePolicy"]);
        self.versions(|api_version, schema| {
            let composite =
                with_machinery(schema, composite_spec(scope, update_policy), status(scope));
            let namespaced = scope == Scope::Namespaced;
            let mut made = vec![Definition::new(
                api_version.clone(),
                kind.clone(),
                Role::Composite,
                namespaced,
                composite,
            )];
            if let (Some(claim), Scope::LegacyCluster) = (claim, scope) {
                let schema =
                    with_machinery(schema, claim_spec(delete_policy), status(Scope::LegacyCluster));
                made.push(Definition::new(
                    api_version,
                    claim.to_owned(),
                    Role::Claim,
                    true,
                    schema,
                ));
            }
            made
        })
    }

    fn versions(
        &self,
        define: impl Fn(String, &Value) -> Vec<Definition>,
    ) -> Result<Vec<Definition>, SchemaError> {
        let group = self.text(&["spec", "group"])?;
        let versions = at(self.document, &["spec", "versions"]).and_then(Value::as_array);
        let versions = versions.ok_or_else(|| self.malformed("spec.versions"))?;
        let mut made = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            if version.get("served").and_then(Value::as_bool) == Some(false) {
                continue;
            }
            let path = format!("spec.versions[{index}]");
            let name =
                text(version, &["name"]).ok_or_else(|| self.malformed(&format!("{path}.name")))?;
            let schema = at(version, &["schema", "openAPIV3Schema"])
                .ok_or_else(|| self.malformed(&format!("{path}.schema.openAPIV3Schema")))?;
            made.extend(define(format!("{group}/{name}"), schema));
        }
        Ok(made)
    }

    fn text(&self, path: &[&str]) -> Result<String, SchemaError> {
        text(self.document, path).map(str::to_owned).ok_or_else(|| self.malformed(&path.join(".")))
    }

    fn malformed(&self, path: &str) -> SchemaError {
        SchemaError::Malformed { name: self.name.clone(), path: path.to_owned() }
    }
}

/// The fields that Crossplane adds to a composite's spec. They are directly in the spec of a legacy
/// composite, and below `spec.crossplane` of all others.
fn composite_spec(scope: Scope, update_policy: Option<&Value>) -> Value {
    let mut fields = composition_fields();
    let mut policy = enumeration(&["Automatic", "Manual"]);
    if let Some(default) = update_policy {
        policy["default"] = default.clone();
    }
    fields["compositionUpdatePolicy"] = policy;
    let ref_fields: &[&str] = match scope {
        Scope::Namespaced => &["apiVersion", "kind", "name"],
        _ => &["apiVersion", "kind", "name", "namespace"],
    };
    fields["resourceRefs"] = json!({
        "type": "array", "x-kubernetes-list-type": "atomic", "items": strings(ref_fields, &["apiVersion", "kind"]),
    });
    if scope != Scope::LegacyCluster {
        return json!({"crossplane": {"type": "object", "properties": fields}});
    }
    let claim = ["apiVersion", "kind", "name", "namespace"];
    fields["claimRef"] = strings(&claim, &claim);
    fields["writeConnectionSecretToRef"] = strings(&["name", "namespace"], &["name", "namespace"]);
    fields
}

fn status(scope: Scope) -> Value {
    let mut condition = strings(
        &["message", "reason", "status", "type"],
        &["lastTransitionTime", "reason", "status", "type"],
    );
    condition["properties"]["lastTransitionTime"] = date_time();
    condition["properties"]["observedGeneration"] = json!({"type": "integer", "format": "int64"});
    let mut fields = json!({"conditions": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": condition,
    }});
    if scope == Scope::LegacyCluster {
        fields["connectionDetails"] =
            json!({"type": "object", "properties": {"lastPublishedTime": date_time()}});
        fields["claimConditionTypes"] =
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    }
    fields
}

/// The fields that Crossplane adds to a claim's spec.
fn claim_spec(delete_policy: Option<&Value>) -> Value {
    let mut fields = composition_fields();
    fields["compositionUpdatePolicy"] = enumeration(&["Automatic", "Manual"]);
    let mut policy = enumeration(&["Background", "Foreground"]);
    if let Some(default) = delete_policy {
        policy["default"] = default.clone();
    }
    fields["compositeDeletePolicy"] = policy;
    fields["resourceRef"] =
        strings(&["apiVersion", "kind", "name"], &["apiVersion", "kind", "name"]);
    fields["writeConnectionSecretToRef"] = strings(&["name"], &["name"]);
    fields
}

fn composition_fields() -> Value {
    let selector = json!({
        "type": "object", "required": ["matchLabels"],
        "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}},
    });
    json!({
        "compositionRef": strings(&["name"], &["name"]),
        "compositionSelector": selector,
        "compositionRevisionRef": strings(&["name"], &["name"]),
        "compositionRevisionSelector": selector,
    })
}

/// The schema of the CRD that Crossplane creates from an XRD's schema. Crossplane copies only some
/// fields of the schema, and its own fields take precedence.
fn with_machinery(schema: &Value, spec: Value, status: Value) -> Value {
    let mut name = json!({"type": "string", "maxLength": 63});
    if let Some(shorter) =
        at(schema, &["properties", "metadata", "properties", "name", "maxLength"])
            .filter(|length| length.as_u64().is_some_and(|length| length < 63))
    {
        name["maxLength"] = shorter.clone();
    }
    let mut made = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": name}},
            "spec": section(schema, "spec", spec),
            "status": section(schema, "status", status),
        },
    });
    for key in ["description", "x-kubernetes-validations"] {
        if let Some(value) = schema.get(key) {
            made[key] = value.clone();
        }
    }
    made
}

fn section(schema: &Value, name: &str, machinery: Value) -> Value {
    let given = at(schema, &["properties", name]).unwrap_or(&Value::Null);
    let mut properties =
        given.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Value::Object(machinery) = machinery {
        properties.extend(machinery);
    }
    let mut made = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!(properties)),
    ]);
    let copied = ["required", "x-kubernetes-validations", "oneOf", "description"];
    // Crossplane drops preserve-unknown-fields on status.
    let preserved = (name == "spec").then_some("x-kubernetes-preserve-unknown-fields");
    for key in copied.into_iter().chain(preserved) {
        if let Some(value) = given.get(key) {
            made.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(made)
}

fn strings(fields: &[&str], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn enumeration(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

fn date_time() -> Value {
    json!({"type": "string", "format": "date-time"})
}
