use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Disk, disk, legacy, namespaced, object, ready, slots};
use crate::compose::Composer;
use crate::error::Error;

/// A machine that uses a generated password, and publishes its host.
fn with_password(cx: &mut Composer<'_>) -> Result<(), Error> {
    let password = cx.generated("password");
    let key = password
        .reference
        .map(|(name, namespace, key)| format!("{}/{name}/{key}", namespace.unwrap_or_default()));
    let machine = cx
        .managed("machine", Disk { key, ..disk("here") })
        .needs(password.published, "its password")
        .add()?;
    cx.connection("host", machine.text(|machine| machine.id.clone()));
    Ok(())
}

#[test]
fn legacy_a_secret_is_made_published_and_only_then_used() {
    let mut test = legacy();
    let first = test.compose(with_password).unwrap();
    assert_eq!(slots(&first), [""; 0]);
    assert_eq!(first.message(), "machine (Disk): waits for its password");
    assert_eq!(first.requeue, Duration::from_secs(5), "Crossplane publishes it after this answer");
    let password = first.connection["password"].clone();
    assert_eq!(password, b"B".repeat(32));

    test.details = first.connection;
    test.random = 2;
    let second = test.compose(with_password).unwrap();
    assert_eq!(second.connection["password"], password, "generated once");
    assert_eq!(object(&second, "machine")["spec"]["forProvider"]["key"], "vault/the-uid/password");
    assert_eq!(second.requeue, Duration::from_secs(30));
}

#[test]
fn namespaced_a_secret_is_made_composed_and_only_then_used() {
    let mut test = namespaced();
    let first = test.compose(with_password).unwrap();
    assert_eq!(slots(&first), ["connection"]);
    let secret = object(&first, "connection");
    assert_eq!(secret["kind"], "Secret");
    assert_eq!(secret["metadata"]["name"], "thing-things");
    assert_eq!(secret["data"], json!({"password": STANDARD.encode("B".repeat(32))}));
    assert!(first.connection.is_empty(), "Crossplane publishes none for these");
    assert!(!first.resources["connection"].1, "not ready before it was observed");

    test.observed.push(("connection".to_owned(), secret, BTreeMap::new()));
    test.random = 2;
    let second = test.compose(with_password).unwrap();
    assert_eq!(
        object(&second, "connection")["data"],
        object(&first, "connection")["data"],
        "generated once"
    );
    assert!(second.resources["connection"].1);
    assert_eq!(object(&second, "machine")["spec"]["forProvider"]["key"], "/thing-things/password");
}

#[test]
fn unpublished_secret_does_not_shorten_the_requeue() {
    let mut test = legacy();
    test.xr["spec"].as_object_mut().unwrap().remove("writeConnectionSecretToRef");
    let answer = test
        .compose(|cx| {
            assert_eq!(cx.generated("password").reference, None);
            cx.managed("machine", disk("here"))
                .needs(false, "a connection secret")
                .add()
                .map(|_| ())
        })
        .unwrap();
    assert_eq!(answer.requeue, Duration::from_secs(30));
}

#[test]
fn a_consumer_that_exists_stays_when_its_secret_is_lost() {
    let answer = legacy().with("machine", ready()).compose(with_password).unwrap();
    assert_eq!(slots(&answer), ["machine"]);
    assert_eq!(answer.connection["password"], b"B".repeat(32), "a new password is published");
}

#[test]
fn connection_details_contain_only_observed_values() {
    let mut seen = ready();
    seen["status"]["atProvider"] = json!({"id": "d-1"});
    for (details, host) in [(seen, Some("d-1")), (ready(), None)] {
        let mut test = legacy().with("machine", details.clone());
        test.details = BTreeMap::from([("password".to_owned(), b"old".to_vec())]);
        let answer = test.compose(with_password).unwrap();
        assert_eq!(answer.connection.get("host").map(Vec::as_slice), host.map(str::as_bytes));
        assert_eq!(answer.connection["password"], b"old");

        let answer = namespaced().with("machine", details).compose(with_password).unwrap();
        assert_eq!(
            object(&answer, "connection")["data"].get("host"),
            host.map(|host| json!(STANDARD.encode(host))).as_ref()
        );
    }
}

#[test]
fn existing_connection_secret_stays_without_details() {
    let answer = namespaced()
        .with("connection", json!({"apiVersion": "v1", "kind": "Secret"}))
        .compose(|_| Ok(()))
        .unwrap();
    assert_eq!(slots(&answer), ["connection"]);
}

#[test]
fn environment_without_connection_details_has_no_secret() {
    let answer = namespaced().compose(|cx| {
        cx.connection("host", None::<String>);
        cx.connection("user", Some(""));
        Ok(())
    });
    assert_eq!(slots(&answer.unwrap()), [""; 0]);
}

#[test]
fn a_provider_writes_its_secret_beside_the_composites_own() {
    let publish =
        |cx: &mut Composer<'_>| cx.managed("disk", disk("here")).publishes().add().map(|_| ());
    let reference = |answer| object(&answer, "disk")["spec"]["writeConnectionSecretToRef"].clone();
    let wanted = json!({"name": "thing-x1-disk-abcde", "namespace": "vault"});
    assert_eq!(reference(legacy().compose(publish).unwrap()), wanted);
    assert_eq!(
        reference(namespaced().compose(publish).unwrap()),
        json!({"name": "thing-disk-abcde"})
    );
    let mut elsewhere = ready();
    elsewhere["spec"]["writeConnectionSecretToRef"] = json!({"name": "a", "namespace": "b"});
    assert_eq!(
        reference(legacy().with("disk", elsewhere).compose(publish).unwrap()),
        json!({"name": "a", "namespace": "b"})
    );
}
