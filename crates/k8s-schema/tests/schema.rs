//! Checks an API server's messages, on small schemas of our own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

use crossplane::spec::{FIELDS, OF_CLAIMS};
use k8s_schema::{Role, Schemas};
use serde_json::{Value, json};

fn xrd() -> Value {
    let parameters = json!({
        "type": "object",
        "required": ["owner"],
        "x-kubernetes-validations": [{"rule": "self.diskGB >= oldSelf.diskGB", "message": "a disk only grows"}],
        "properties": {
            "owner": {"type": "string", "minLength": 1},
            "size": {"type": "string", "enum": ["small", "medium", "large"], "default": "small"},
            "diskGB": {"type": "integer", "format": "int32", "minimum": 75, "maximum": 16384, "default": 100},
            "region": {"type": "string", "default": "us-east-1",
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "region is immutable"}]},
            "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
            "cidrs": {"type": "array", "maxItems": 2, "items": {"type": "string", "format": "cidr"}},
            "port": {"x-kubernetes-int-or-string": true},
            "note": {"type": "string", "nullable": true},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "number": {"type": "integer", "default": 80}}}},
            "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    });
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xdemos.acme.io"},
        "spec": {
            "group": "acme.io", "names": {"kind": "XDemo", "plural": "xdemos"},
            "claimNames": {"kind": "Demo", "plural": "demos"},
            "defaultCompositeDeletePolicy": "Foreground",
            "versions": [{"name": "v1alpha1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "required": ["parameters"], "properties": {"parameters": parameters}},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                },
            }}}],
        },
    })
}

fn claim(parameters: Value) -> Value {
    json!({
        "apiVersion": "acme.io/v1alpha1", "kind": "Demo",
        "metadata": {"name": "demo", "namespace": "team"}, "spec": {"parameters": parameters},
    })
}

fn refused(object: &Value, old: Option<&Value>) -> Vec<String> {
    let schemas = Schemas::new([&xrd()]).unwrap();
    let violations = schemas.for_object(object).unwrap().validate(object, old);
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn an_xrd_defines_a_composite_and_its_claim() {
    let schemas = Schemas::new([&xrd()]).unwrap();
    let kinds: Vec<_> =
        schemas.iter().map(|kind| (kind.kind(), kind.role(), kind.namespaced())).collect();
    assert_eq!(kinds, [("Demo", Role::Claim, true), ("XDemo", Role::Composite, false)]);
}

#[test]
fn fields_that_crossplane_adds_are_in_its_lists() {
    let schemas = Schemas::new([&xrd()]).unwrap();
    let added = |kind: &str| -> Vec<String> {
        let schema = schemas.get("acme.io/v1alpha1", kind).unwrap().schema();
        let fields = schema["properties"]["spec"]["properties"].as_object().unwrap().keys();
        let mut fields: Vec<String> =
            fields.filter(|field| *field != "parameters").cloned().collect();
        fields.sort();
        fields
    };
    assert_eq!(added("Demo"), OF_CLAIMS);
    let of_composites = added("XDemo");
    assert!(
        of_composites.iter().all(|field| FIELDS.contains(&field.as_str())),
        "{of_composites:?}"
    );
}

#[test]
fn defaults_are_nested_and_replace_nulls_that_are_not_allowed() {
    let mut object =
        claim(json!({"owner": "ada", "size": null, "note": null, "ports": [{"name": "web"}]}));
    Schemas::new([&xrd()]).unwrap().for_object(&object).unwrap().apply_defaults(&mut object);
    let expected = json!({
        "owner": "ada", "size": "small", "note": null, "ports": [{"name": "web", "number": 80}],
        "diskGB": 100, "region": "us-east-1",
    });
    assert_eq!(object["spec"]["parameters"], expected);
    assert_eq!(object["spec"]["compositeDeletePolicy"], "Foreground");
}

#[test]
fn null_without_a_default_counts_as_missing() {
    let mut object = claim(json!({"owner": null}));
    Schemas::new([&xrd()]).unwrap().for_object(&object).unwrap().apply_defaults(&mut object);
    assert_eq!(refused(&object, None), ["spec.parameters.owner: is missing; allowed: a string"]);
}

#[test]
fn valid_claim_is_accepted() {
    let parameters = json!({
        "owner": "ada", "size": "large", "diskGB": 75, "version": "4.8.0", "cidrs": ["10.0.0.0/8", "::/0"],
        "port": "http", "note": null, "values": {"any": [1, {"thing": true}]}, "env": {"A_KEY": "x"},
    });
    assert_eq!(refused(&claim(parameters), None), Vec::<String>::new());
}

#[test]
fn all_violations_are_reported_with_found_and_allowed_values() {
    let parameters = json!({
        "size": "larg", "diskGB": 5, "version": 4.8, "cidrs": ["10.0.0.0/33", "x", "::/0"], "port": true,
        "ports": [{"name": "a"}, {"name": "a"}, {}], "env": {"A": 1}, "diskGb": 100, "colour": "red",
    });
    let expected = [
        "spec.parameters.cidrs: found 3 items; allowed: at most 2 items",
        r#"spec.parameters.cidrs[0]: found "10.0.0.0/33"; allowed: an address range like 10.0.0.0/8"#,
        r#"spec.parameters.cidrs[1]: found "x"; allowed: an address range like 10.0.0.0/8"#,
        r"spec.parameters.colour: unknown field; allowed: cidrs, diskGB, env, note, owner, port, ports, region, size, values, version",
        r"spec.parameters.diskGB: found 5; allowed: 75 to 16384",
        r"spec.parameters.diskGb: unknown field; did you mean diskGB?",
        r#"spec.parameters.env.A: found 1; allowed: a string, in quotes: "1""#,
        r"spec.parameters.owner: is missing; allowed: a string",
        r"spec.parameters.port: found true; allowed: an integer or a string",
        r#"spec.parameters.ports[1]: found name "a" twice; each may be given once"#,
        r"spec.parameters.ports[2].name: is missing; allowed: a string",
        r#"spec.parameters.size: found "larg"; allowed: "small", "medium", "large"; did you mean large?"#,
        r"spec.parameters.version: found 4.8; allowed: a string that matches ^\d+\.\d+\.\d+$",
    ];
    assert_eq!(refused(&claim(parameters), None), expected);
}

#[test]
fn boolean_for_a_string_with_a_pattern_has_a_hint() {
    for found in [true, false] {
        let expected = format!(
            r"spec.parameters.version: found {found}; allowed: a string that matches ^\d+\.\d+\.\d+$; YAML reads on, off, yes and no as booleans"
        );
        assert_eq!(refused(&claim(json!({"owner": "ada", "version": found})), None), [expected]);
    }
}

#[test]
fn transition_rules_look_at_the_stored_object() {
    let old = claim(json!({"owner": "ada", "diskGB": 200, "region": "us-east-1"}));
    let new = claim(json!({"owner": "ada", "diskGB": 100, "region": "eu-west-1"}));
    assert_eq!(refused(&new, None), Vec::<String>::new());
    let expected = [
        "spec.parameters: a disk only grows",
        r#"spec.parameters.region: found "eu-west-1": region is immutable"#,
    ];
    assert_eq!(refused(&new, Some(&old)), expected);
}

#[test]
fn metadata_is_checked_as_kubernetes_does() {
    let mut object = claim(json!({"owner": "ada"}));
    object["metadata"] = json!({"name": "My_Demo", "labels": {"team": true}, "label": {}});
    let found = refused(&object, None);
    assert!(
        found[0].starts_with("metadata.label: unknown field; did you mean labels?"),
        "{found:?}"
    );
    assert_eq!(
        found[1],
        r#"metadata.labels.team: found true; allowed: a string, in quotes: "true""#
    );
    assert!(
        found[2].starts_with(r#"metadata.name: found "My_Demo"; allowed: lower-case letters"#),
        "{found:?}"
    );
    object["metadata"] = json!({"name": "demo", "labels": {"b a d!": "x", "example.org/team": "x"},
        "annotations": {"Example.org/x": "x", "a/b/c": "x"}, "finalizers": ["", "acme.io/keep"]});
    let found = refused(&object, None);
    let expected = [
        r#"metadata.annotations: found "a/b/c""#,
        r#"metadata.finalizers[0]: found """#,
        r#"metadata.labels: found "b a d!""#,
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found.starts_with(expected) && found.contains("; allowed: at most 63 letters, "),
            "{found}"
        );
    }
    object["metadata"] = json!({"name": "a".repeat(64)});
    assert!(refused(&object, None)[0].ends_with("allowed: at most 63 characters"));
}

#[test]
fn crossplanes_fields_are_allowed_in_their_api() {
    let mut composite = claim(json!({"owner": "ada"}));
    composite["kind"] = json!("XDemo");
    composite["spec"]["claimRef"] = json!({"apiVersion": "acme.io/v1alpha1", "kind": "Demo", "name": "demo", "namespace": "team"});
    composite["status"] = json!({"connectionDetails": "host", "phase": "Ready"});
    assert_eq!(
        refused(&composite, None),
        [r#"status.connectionDetails: found "host"; allowed: an object"#]
    );
    composite["spec"]["crossplane"] = json!({});
    assert!(refused(&composite, None)[0].starts_with("spec.crossplane: unknown field"));
}

#[test]
fn a_v2_definition_keeps_cores_fields_below_crossplane() {
    let mut xrd = xrd();
    xrd["apiVersion"] = json!("apiextensions.crossplane.io/v2");
    let mut object = claim(json!({"owner": "ada"}));
    object["kind"] = json!("XDemo");
    object["spec"]["crossplane"] =
        json!({"resourceRefs": [{"apiVersion": "v1", "kind": "Pod", "namespace": "x"}]});
    let schemas = Schemas::new([&xrd]).unwrap();
    assert!(schemas.get("acme.io/v1alpha1", "Demo").is_none());
    let found = schemas.for_object(&object).unwrap().validate(&object, None);
    assert_eq!(found[0].path, "spec.crossplane.resourceRefs[0].namespace");
}

#[test]
fn document_other_than_a_definition_is_named() {
    let error = Schemas::new([&json!({"kind": "Pod", "metadata": {"name": "x"}})]).unwrap_err();
    assert!(error.to_string().starts_with(r#"Pod "x" is not a definition"#), "{error}");
}
