//! A secret in the request never appears in the response or the log, even if a provider's message
//! quotes it.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use function_proto::v1::{
    CredentialData, Credentials, RunFunctionRequest, RunFunctionResponse, credentials::Source,
};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::generate;
use crate::support::world::{Composed, Details, World};
use crate::support::{self, world};

proptest! {
    #![proptest_config(generate::config())]

    #[test]
    fn a_secret_never_shows(
        world in generate::world(), canary in "[A-Za-z0-9_-]{14,40}", shape in 0..SHAPES.len(), hidden in place(), quoting in quoting(), whom: Index,
    ) {
        let mut world = world;
        let secret = SHAPES[shape].replace("CANARY", &canary);
        let mut request = hide(&mut world, &hidden, &secret, whom);
        if !world.composed.is_empty() {
            let slot = crate::pick(&world, whom);
            quote(&mut world.composed.get_mut(&slot).unwrap().object, &quoting.replace("CANARY", &canary));
        }
        request.observed = world.request().observed;
        let (response, log) = logged(request);
        let told = everything_but_secrets(&response);
        prop_assert!(!told.contains(&canary), "{told}");
        prop_assert!(!told.contains(&STANDARD.encode(&secret)), "in base64: {told}");
        prop_assert!(!log.contains(&canary), "{log}");
        prop_assert!(log.contains("DEBUG"), "nothing was logged: {log}");
    }
}

/// Secret values. CANARY is the part that must not appear anywhere.
const SHAPES: [&str; 5] = [
    "CANARY",
    "  CANARY\n",
    "postgres://app:CANARY@10.0.0.3:5432/app?sslmode=require",
    "apiVersion: v1\nkind: Config\nusers:\n- name: app\n  user:\n    token: CANARY\n",
    "{\"type\":\"service_account\",\"private_key\":\"CANARY\"}",
];

/// The place of a secret in a request.
#[derive(Clone, Debug)]
enum Place {
    Composite(String),
    Resource(String),
    Secret(String),
    Credentials,
}

fn place() -> impl Strategy<Value = Place> {
    let key = "[a-zA-Z_]{1,8}|db_password|kubeconfig|host";
    prop_oneof![
        key.prop_map(Place::Composite),
        key.prop_map(Place::Resource),
        key.prop_map(Place::Secret),
        Just(Place::Credentials),
    ]
}

/// The message of a provider, which may quote the secret twice.
fn quoting() -> impl Strategy<Value = String> {
    let words = "[ -~]{0,20}";
    (words, words, any::<bool>()).prop_map(|(before, after, twice)| {
        let again = if twice { ", and again CANARY" } else { "" };
        format!("create failed: {before} \"CANARY\" {after}{again}")
    })
}

fn hide(world: &mut World, place: &Place, secret: &str, whom: Index) -> RunFunctionRequest {
    let mut request = RunFunctionRequest::default();
    match place {
        Place::Composite(key) => _ = world.details.insert(key.clone(), secret.into()),
        Place::Resource(key) if !world.composed.is_empty() => {
            let slot = crate::pick(world, whom);
            world.composed.get_mut(&slot).unwrap().details.insert(key.clone(), secret.into());
        }
        Place::Secret(key) if !world.composed.is_empty() => {
            let ours =
                world.composed.values_mut().find(|composed| composed.object["kind"] == "Secret");
            if let Some(ours) = ours {
                ours.object["data"][key] = json!(STANDARD.encode(secret));
            } else {
                let data = json!({key: STANDARD.encode(secret)});
                let object = json!({"apiVersion": "v1", "kind": "Secret", "data": data});
                let theirs = Composed { object, details: Details::new() };
                world.composed.insert("secret-of-others".to_owned(), theirs);
            }
        }
        _ => {
            let data = CredentialData { data: [("key".to_owned(), secret.into())].into() };
            let credentials = Credentials { source: Some(Source::CredentialData(data)) };
            request = RunFunctionRequest {
                credentials: [("cloud".to_owned(), credentials)].into(),
                ..request
            };
        }
    }
    let credentials = request.credentials;
    RunFunctionRequest { credentials, ..world.request() }
}

/// Quotes the message in every condition of a resource.
fn quote(object: &mut Value, message: &str) {
    let condition = |kind: &str| json!({"type": kind, "status": "False", "reason": "ReconcileError", "message": message});
    object["status"] = json!({"conditions": [condition("Synced"), condition("Ready"), condition("LastAsyncOperation")]});
}

/// All texts of a response that users can read.
fn everything_but_secrets(response: &RunFunctionResponse) -> String {
    let resources =
        world::desired(response).into_iter().filter(|(_, object)| object["kind"] != "Secret");
    let resources: Vec<_> = resources.map(|(slot, object)| json!({ slot: object })).collect();
    format!(
        "{} {:?} {:?} {}",
        world::status(response),
        response.results,
        response.conditions,
        json!(resources)
    )
}

/// An answer and its log.
fn logged(request: RunFunctionRequest) -> (RunFunctionResponse, String) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
        tracing::subscriber::set_global_default(log.with_writer(|| Log).finish()).unwrap();
    });
    LOG.set(Some(Vec::new()));
    let response = support::answer(request);
    (response, String::from_utf8(LOG.take().unwrap()).unwrap())
}

thread_local! {
    /// The log of this thread, while a test records it.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.as_mut().map(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
