use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::compose::Composer;

use crate::compose::tests::{Test, legacy};
use crate::error::Error;
use crate::status::Answer;

fn compose(xr: Value, observed: Option<Value>, object: Value) -> Result<Answer, Error> {
    let observed = observed.map(|object| ("namespace".to_owned(), object, BTreeMap::new()));
    let test = Test { xr, observed: observed.into_iter().collect(), ..legacy() };
    let test = test.with_found([("Service/b/a".to_owned(), None)]);
    test.compose(|cx| cx.object("namespace", object).add())
}

fn namespace(phase: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "status": {"phase": phase}})
}

#[test]
fn namespaced_api_composes_the_object_natively() -> Result<(), Error> {
    let xr = json!({"kind": "X", "metadata": {"name": "a", "namespace": "b"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
    let answer = compose(xr, None, service)?;
    assert_eq!(answer.resources["namespace"].0["kind"], "Service");
    Ok(())
}

#[test]
fn claims_api_wraps_the_object_and_reads_its_readiness() -> Result<(), Error> {
    let xr = json!({"kind": "X", "metadata": {"name": "a"}});
    for (phase, ready) in [("Active", true), ("Terminating", false)] {
        let wrapper = json!({
            "apiVersion": "kubernetes.crossplane.io/v1alpha2",
            "kind": "Object",
            "spec": {"forProvider": {"manifest": namespace(phase)}},
            "status": {
                "atProvider": {"manifest": namespace(phase)},
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}],
            },
        });
        let answer = compose(xr.clone(), Some(wrapper), namespace(phase))?;
        let (object, is_ready) = &answer.resources["namespace"];
        assert_eq!(object["spec"]["forProvider"]["manifest"]["kind"], "Namespace");
        assert_eq!(*is_ready, ready, "{phase}");
        assert_eq!(answer.status["resources"][0]["kind"], "Namespace");
    }
    Ok(())
}

#[test]
fn secret_with_secret_values_is_never_wrapped() {
    let xr = json!({"kind": "X", "metadata": {"name": "a"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret"});
    assert!(matches!(compose(xr, None, secret), Err(Error::Defect(_))));
}

#[test]
fn secret_without_secret_values_is_wrapped() -> Result<(), Error> {
    let secret = || json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "code"}});
    let answer = composed(false, |cx| cx.object("code", secret()).public().add())?;
    let wrapper = Value::from(answer.resources["code"].0.clone());
    assert_eq!(wrapper["kind"], "Object");
    assert_eq!(wrapper["spec"]["forProvider"]["manifest"], secret());
    assert_eq!(wrapper["spec"]["watch"], Value::Null, "watches need a right to all Secrets");
    Ok(())
}

/// Composes with a composite that has an observed slot `config`.
fn composed(
    namespaced: bool,
    verbs: impl FnOnce(&mut Composer<'_>) -> Result<(), Error>,
) -> Result<Answer, Error> {
    let mut xr = json!({"kind": "X", "metadata": {"name": "a"}});
    if namespaced {
        xr["metadata"]["namespace"] = json!("b");
    }
    let config = ("config".to_owned(), json!({"kind": "ProviderConfig"}), BTreeMap::new());
    Test { xr, observed: vec![config], ..legacy() }.compose(verbs)
}

#[test]
fn object_inside_a_cluster_uses_its_provider_config() -> Result<(), Error> {
    let reference = [json!({"name": "inner"}), json!({"name": "inner", "kind": "ProviderConfig"})];
    for (namespaced, reference) in [false, true].into_iter().zip(reference) {
        let answer =
            composed(namespaced, |cx| cx.inside("inner", "namespace", namespace("Active")).add())?;
        let object = &answer.resources["namespace"].0;
        assert_eq!(
            (&object["kind"], &object["spec"]["providerConfigRef"]),
            (&json!("Object"), &reference)
        );
    }
    Ok(())
}

#[test]
fn a_provider_config_is_ready_once_its_secret_was_observed() -> Result<(), Error> {
    let config = || json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "ProviderConfig"});
    for secret in [true, false] {
        let answer = composed(false, |cx| cx.provider_config("config", config(), secret))?;
        assert_eq!(answer.resources["config"].1, secret);
        assert_eq!(answer.status["progress"], "0/0");
    }
    Ok(())
}
