//! Which environment a name means.

use futures::{StreamExt, stream};
use kube::api::DynamicObject;

use super::{Cluster, Kind, Kinds, is_denied};
use crate::failure::Failure;

/// How many kinds are asked at once.
const AT_ONCE: usize = 8;

/// An environment, as it stands.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) object: DynamicObject,
}

/// The environments that the names mean, each `NAME` or `KIND/NAME`; all that cannot be found are told at once.
pub(crate) async fn find_all(
    cluster: &Cluster,
    kinds: &Kinds,
    names: &[String],
) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for name in names {
        match find(cluster, kinds, name).await {
            Ok(one) => found.push(one),
            Err(failure) => failures.push(failure),
        }
    }
    Failure::of_all(failures)?;
    Ok(found)
}

/// The environment that `NAME` or `KIND/NAME` means: the only one of that name.
pub(crate) async fn find(cluster: &Cluster, kinds: &Kinds, text: &str) -> Result<Found, Failure> {
    let (candidates, name) = match text.split_once('/') {
        Some((kind, name)) => (kinds.called(kind)?, name),
        None => (kinds.all().to_vec(), text),
    };
    if name.is_empty() || name.contains('/') {
        return Err(Failure::Usage(format!("found {text:?}; NAME or KIND/NAME is needed")));
    }
    let asked = stream::iter(candidates).map(|kind| async move {
        let answer = kind.api(&cluster.client, Some(&cluster.namespace)).get_opt(name).await;
        (kind, answer)
    });
    let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
    pick(cluster, text, answers)
}

/// The one that is there. What the caller may not see may be what is meant.
fn pick(
    cluster: &Cluster,
    text: &str,
    answers: Vec<(Kind, kube::Result<Option<DynamicObject>>)>,
) -> Result<Found, Failure> {
    let namespace = &cluster.namespace;
    let mut found = Vec::new();
    let mut denied = Vec::new();
    for (kind, answer) in answers {
        match answer {
            Ok(Some(object)) => found.push(Found { kind, object }),
            Ok(None) => {}
            Err(error) if is_denied(&error) => denied.push((kind, error)),
            Err(error) => return Err(cluster.explain(&error, &format!("read {} {text}", kind.name()))),
        }
    }
    match (found.len(), denied.first()) {
        (1, _) => Ok(found.remove(0)),
        (0, None) => Err(Failure::Absent(format!(
            "there is no environment {text} in namespace {namespace}; `paved list -A` shows all that you may see"
        ))),
        (0, Some((kind, error))) => {
            Err(cluster.explain(error, &format!("read {} {text} in namespace {namespace}", kind.name())))
        }
        _ => {
            let name = text.rsplit('/').next().unwrap_or(text);
            let all: Vec<String> =
                found.iter().map(|one| format!("{}/{name}", one.kind.full_name().to_lowercase())).collect();
            Err(Failure::Usage(format!(
                "{text} is more than one environment: say which of {}",
                all.join(", ")
            )))
        }
    }
}
