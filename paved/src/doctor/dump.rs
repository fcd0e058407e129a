//! `paved doctor --dump`: one archive for support.
//!
//! The archive has only values that are known to be no secret: names, kinds, states, times, causes, and
//! values with a closed schema. It has no value of a Secret, a variable, a chart, a label or an
//! annotation, and no message of another program.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use function_paved_road::diagnosis::composite_cause;
use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DynamicObject, ListParams};
use paved_client::cluster::{Api, Cluster, Kind, Kinds, pages};
use paved_client::environment::{Environment, power_word};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::check::Check;
use super::snapshot::{self, ClusterSnapshot, ListResult};
use super::{checks, rights};
use crate::Console;
use crate::cli;
use crate::failure::Failure;
use crate::plan::{Difference, differences};
use crate::style::{self, sign_of};

/// How long the archive may take. The rest of five seconds is for its file.
const TIME_LIMIT: Duration = Duration::from_millis(4500);

/// The folder in the archive.
const FOLDER: &str = "paved-road-dump";

/// The maximum number of events in the archive.
const MOST_EVENTS: u32 = 500;

/// A file of the archive.
type File = (&'static str, String);

/// Writes the archive.
pub(super) async fn run(
    args: &cli::Doctor,
    path: &Path,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let path = path.display();
        return Err(Failure::Usage(format!("{path} exists. Choose another name for the archive")));
    }
    let deadline = Instant::now() + TIME_LIMIT;
    let (files, missing) = match timeout_at(deadline, args.access.connect()).await {
        Ok(Ok(cluster)) => Box::pin(collect(&cluster, deadline)).await,
        Ok(Err(Failure::Usage(message))) => return Err(Failure::Usage(message)),
        Ok(Err(_)) | Err(_) => (Vec::new(), vec!["the connection to the cluster"]),
    };
    let about = about(&missing);
    let all: Vec<File> = [("README.txt", about)].into_iter().chain(files).collect();
    let bytes = packed(&all)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(&bytes))
        .map_err(|error| Failure::Usage(format!("could not write {}: {error}", path.display())))?;
    let (path, count) = (path.display(), all.len());
    writeln!(console.out, "{path}: {count} files without secrets, and without messages")?;
    for part in &missing {
        writeln!(console.err, "note: the archive lacks {part}: no answer in time, or no rights")?;
    }
    style::next(&format!("tar -tzf {path}"), console)?;
    Ok(())
}

/// Reads all parts at once. Returns the files, and the parts that could not be read in time.
async fn collect(cluster: &Cluster, deadline: Instant) -> (Vec<File>, Vec<&'static str>) {
    let Ok(Ok(kinds)) = timeout_at(deadline, Kinds::ask(cluster)).await else {
        return (Vec::new(), vec!["the kinds of the cluster"]);
    };
    let version = async { cluster.client.apiserver_version().await.ok() };
    let taken = snapshot::take(cluster, &kinds);
    let (version, taken, environments, events, rights) = futures::join!(
        timeout_at(deadline, version),
        timeout_at(deadline, taken),
        timeout_at(deadline, environments(cluster, &kinds)),
        timeout_at(deadline, events(cluster)),
        timeout_at(deadline, rights::check(cluster, &kinds)),
    );
    let mut files = Vec::new();
    let mut missing = Vec::new();
    match version {
        Ok(Some(version)) => files.push((
            "versions.json",
            pretty(&json!({"paved": env!("CARGO_PKG_VERSION"), "kubernetes": version.git_version,
                "kinds": kinds.all().iter().map(Kind::full_name).collect::<Vec<_>>()})),
        )),
        _ => missing.push("the version of Kubernetes"),
    }
    match &taken {
        Ok(taken) => {
            let mut all = checks::all(taken);
            match rights {
                Ok(Ok((more, _))) => all.extend(more),
                _ => missing.push("the rights of the user"),
            }
            files.push(("checks.txt", all.iter().map(line).collect()));
            files.push(("packages.json", pretty(&packages(taken))));
        }
        Err(_) => missing.push("the checks and packages"),
    }
    match environments {
        Ok(all) => files.push(("environments.json", pretty(&all))),
        Err(_) => missing.push("the environments"),
    }
    match events {
        Ok(Some(all)) => files.push(("events.json", pretty(&all))),
        _ => missing.push("the events"),
    }
    (files, missing)
}

fn about(missing: &[&str]) -> String {
    let mut text = format!(
        "Support archive of paved {}, {}\n\n\
         Names, kinds, states, times, causes, and values with a closed schema.\n\
         Hidden: Secrets, variables, chart values, labels, annotations, and messages of others.\n",
        env!("CARGO_PKG_VERSION"),
        Timestamp::now(),
    );
    for part in missing {
        text.push_str("Missing: ");
        text.push_str(part);
        text.push('\n');
    }
    text
}

/// A check without its result, which may quote a message.
fn line(check: &Check) -> String {
    format!("{} {}\n", sign_of(check.mark), check.what)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// All environments that the user may list.
async fn environments(cluster: &Cluster, kinds: &Kinds) -> Value {
    let mut all = Vec::new();
    for kind in kinds.all() {
        let everywhere: kube::Result<Vec<_>> = pages(cluster, kind, None, None).try_collect().await;
        let found = match everywhere {
            Ok(found) => Ok(found),
            Err(_) => pages(cluster, kind, Some(&cluster.namespace), None).try_collect().await,
        };
        match found {
            Ok(found) => all.extend(
                found.iter().flat_map(|page| &page.items).map(|one| environment(kind, one)),
            ),
            Err(_) => all.push(json!({"kind": kind.full_name(), "hidden": true})),
        }
    }
    Value::Array(all)
}

/// An environment without the values that could be secrets.
fn environment(kind: &Kind, object: &DynamicObject) -> Value {
    let metadata = &object.metadata;
    let seen = Environment::from_object(object);
    let spec: serde_json::Map<String, Value> =
        differences(kind, &Value::Null, &json!({"spec": object.data["spec"]}))
            .into_iter()
            .map(Difference::into_entry)
            .collect();
    let keys = |entries: &Option<std::collections::BTreeMap<String, String>>| {
        entries.iter().flat_map(|entries| entries.keys().cloned()).collect::<Vec<_>>()
    };
    let parts: Vec<Value> = seen
        .parts
        .iter()
        .map(|part| {
            json!({"slot": part.slot, "kind": part.kind, "ready": part.ready,
                "reason": part.reason.as_deref().and_then(word), "since": time(&part.since),
                "cause": part.cause.as_ref().map(|cause| cause.code)})
        })
        .collect();
    json!({
        "kind": kind.full_name(),
        "namespace": seen.namespace,
        "name": seen.name,
        "uid": seen.uid,
        "generation": metadata.generation,
        "created": seen.created.map(|at| at.to_string()),
        "deleted": seen.deleted.map(|at| at.to_string()),
        "labels": keys(&metadata.labels),
        "annotations": keys(&metadata.annotations),
        "finalizers": metadata.finalizers,
        "spec": spec,
        "phase": word(seen.word()),
        "power": seen.power.map(power_word),
        "conditions": conditions(object),
        "resources": parts,
    })
}

/// The conditions of an object. A message is replaced by its cause.
fn conditions(object: &DynamicObject) -> Vec<Value> {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let shown = |condition: &Value| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let message = text("message");
        json!({"type": word(text("type")), "status": word(text("status")),
            "reason": word(text("reason")), "since": time(text("lastTransitionTime")),
            "cause": (!message.is_empty()).then(|| composite_cause(message).code)})
    };
    all.into_iter().flatten().map(shown).collect()
}

/// The names, images and conditions of Crossplane's packages and APIs.
fn packages(taken: &ClusterSnapshot) -> Value {
    let shown = |list: &ListResult| match list {
        ListResult::All(objects) => objects.iter().map(package).collect(),
        ListResult::Hidden => json!("hidden"),
        ListResult::Failed(_) => json!("failed"),
        ListResult::NoSuchKind => json!("no such kind"),
    };
    json!({
        "functions": shown(&taken.functions),
        "providers": shown(&taken.providers),
        "definitions": shown(&taken.definitions),
        "compositions": shown(&taken.compositions),
    })
}

fn package(object: &DynamicObject) -> Value {
    let image = object.data.pointer("/spec/package").and_then(Value::as_str);
    json!({"name": object.metadata.name, "package": image.map(crossplane::secrets::struck),
        "conditions": conditions(object)})
}

/// The events of the namespace, without their messages.
async fn events(cluster: &Cluster) -> Option<Value> {
    let api: Api<Event> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let list = api.list(&ListParams::default().limit(MOST_EVENTS)).await.ok()?;
    let shown = |event: &Event| {
        let object = &event.involved_object;
        json!({"kind": object.kind, "name": object.name,
            "type": event.type_.as_deref().and_then(word),
            "reason": event.reason.as_deref().and_then(word),
            "count": event.count, "last": event.last_timestamp.as_ref().map(|at| at.0.to_string())})
    };
    Some(list.items.iter().map(shown).collect())
}

/// A word of letters, as phases and reasons are. Another text may be a secret.
fn word(text: &str) -> Option<String> {
    const LONGEST: usize = 64;
    let is_word = !text.is_empty()
        && text.len() <= LONGEST
        && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word.then(|| text.to_owned())
}

fn time(text: &str) -> Option<String> {
    text.parse().ok().map(|at: Timestamp| at.to_string())
}

/// A compressed archive.
fn packed(files: &[File]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_cksum();
        archive.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()
}
