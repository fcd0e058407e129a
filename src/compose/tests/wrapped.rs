use serde_json::{Value, json};

use super::{legacy, namespaced, object};
use crate::compose::Composer;
use crate::error::Error;

fn service(cx: &mut Composer<'_>) -> Result<(), Error> {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"port": 80}});
    cx.object("service", service).add()
}

/// A wrapper that its provider reports as ready.
fn wrapper(at_provider: &Value) -> Value {
    json!({
        "apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
        "spec": {"forProvider": {"manifest": {"kind": "Service"}}, "providerConfigRef": {"name": "old"}},
        "status": {"atProvider": at_provider, "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}]},
    })
}

#[test]
fn wrapper_without_an_observed_object_is_not_ready() {
    let answer = legacy().with("service", wrapper(&json!({}))).compose(service).unwrap();
    assert!(!answer.resources["service"].1);
    let line = &answer.status["resources"][0];
    assert_eq!(
        (&line["reason"], &line["message"]),
        (&json!("Creating"), &json!("is being created"))
    );
}

#[test]
fn unaccepted_wrapper_is_reported() {
    let mut test = legacy();
    test.xr["spec"]["resourceRefs"] = json!([{"kind": "Object", "name": "a"}]);
    let answer = test.compose(service).unwrap();
    assert_eq!(answer.status["resources"][0]["reason"], "NotAccepted");
    assert_eq!(
        answer.message(),
        "service (Service): the API server has not accepted this Object. Check the events of \
         XThing thing-x1, and that the \
         provider is installed"
    );
}

#[test]
fn native_object_keeps_its_name_in_the_composites_namespace() {
    let composed = object(&namespaced().compose(service).unwrap(), "service");
    assert_eq!(composed["kind"], "Service");
    assert_eq!(composed["metadata"]["name"], "web");
    assert_eq!(composed["metadata"]["labels"]["paved-road.fn.crossplane.io/composed"], "true");
}

#[test]
fn label_is_on_the_wrapper_and_not_on_the_wrapped_object() {
    let composed = object(&legacy().compose(service).unwrap(), "service");
    assert_eq!(composed["metadata"]["labels"]["paved-road.fn.crossplane.io/composed"], "true");
    assert_eq!(composed["spec"]["forProvider"]["manifest"]["metadata"], json!({"name": "web"}));
}
