//! Finds the environment with a name.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use kube::api::{DynamicObject, ObjectList, TypeMeta};

use super::{Cluster, Kind, Kinds, Selector, is_denied};
use crate::Failure;
use crate::names::{A_NAME, is_name};

/// The maximum number of kinds requested at once.
const CONCURRENCY: usize = 8;

/// The maximum number of names requested one by one.
const FEW: usize = 8;

/// An environment: its object, or the data that a caller reads from it.
#[derive(Clone, Debug)]
pub struct Found<O = DynamicObject> {
    /// The kind of the environment.
    pub kind: Kind,
    /// The object, or the data read from it.
    pub object: O,
    /// The version of the list that contained it, if it was listed. A watch can continue from that
    /// version.
    pub listed: Option<String>,
}

/// Finds the environments with these names, or the reason for a failure. [`find`] describes the
/// names. `read` extracts the needed data, because thousands of whole objects take much memory.
/// Few names are requested one by one. For many names, each kind is listed once.
pub async fn find_each<O>(
    cluster: &Cluster,
    kinds: &Kinds,
    names: &[String],
    read: impl Fn(DynamicObject) -> O,
) -> Result<Vec<Result<Found<O>, Failure>>, Failure> {
    if names.len() > FEW {
        return among(cluster, kinds, names, &read).await;
    }
    let mut each = Vec::new();
    for name in names {
        each.push(find(cluster, kinds, name).await);
    }
    Ok(once(each).into_iter().map(|one| Ok(one?.read(&read))).collect())
}

impl Found {
    /// The same environment with the result of `read` as the object.
    pub fn read<O>(self, read: impl Fn(DynamicObject) -> O) -> Found<O> {
        Found { kind: self.kind, object: read(self.object), listed: self.listed }
    }
}

/// Removes duplicates. The same environment may have several names: `ada gpuws/ada`.
fn once(mut each: Vec<Result<Found, Failure>>) -> Vec<Result<Found, Failure>> {
    let mut known = BTreeSet::new();
    each.retain(|one| match one {
        Ok(Found { kind, object, .. }) => {
            let metadata = &object.metadata;
            known.insert((kind.full_name(), metadata.namespace.clone(), metadata.name.clone()))
        }
        Err(_) => true,
    });
    each
}

/// The only environment with the name `NAME`, `KIND/NAME` or `NAMESPACE/KIND/NAME`. `KIND` is any
/// name of the kind, alone or with its group.
pub async fn find(cluster: &Cluster, kinds: &Kinds, text: &str) -> Result<Found, Failure> {
    let Candidates { kinds, namespace, name } = Candidates::parse(cluster, kinds, text)?;
    let asked = stream::iter(kinds).map(|kind| async move {
        let answer = kind.api(&cluster.client, Some(namespace)).get_opt(name).await;
        (kind, answer)
    });
    let answers: Vec<_> = asked.buffered(CONCURRENCY).collect().await;
    let mut found = Vec::new();
    let mut denied = None;
    for (kind, answer) in answers {
        match answer {
            Ok(object) => {
                let one =
                    |object| (kind.full_name(), Found { kind: kind.clone(), object, listed: None });
                found.extend(object.map(one));
            }
            Err(error) => {
                let failure = cluster.explain(
                    &error,
                    &format!("read {} {name} in namespace {namespace}", kind.name()),
                );
                if !is_denied(&error) {
                    return Err(failure);
                }
                denied.get_or_insert(failure);
            }
        }
    }
    pick(namespace, text, found, denied)
}

/// The environments that a text may name.
struct Candidates<'t> {
    kinds: Vec<Kind>,
    namespace: &'t str,
    name: &'t str,
}

impl<'t> Candidates<'t> {
    fn parse(cluster: &'t Cluster, kinds: &Kinds, text: &'t str) -> Result<Self, Failure> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [name] => (None, None, name),
            [kind, name] => (None, Some(kind), name),
            [namespace, kind, name] => (Some(namespace), Some(kind), name),
            _ => (None, None, ""),
        };
        let kinds = match kind {
            Some(kind) => kinds.called(kind)?,
            None => kinds.all().to_vec(),
        };
        if !(is_name(name) && namespace.is_none_or(is_name)) {
            return Err(Failure::Usage(format!(
                "found {text:?}; allowed: NAME, KIND/NAME or NAMESPACE/KIND/NAME, {A_NAME}"
            )));
        }
        let flag = &cluster.namespace;
        if let Some(own) = namespace.filter(|own| cluster.is_namespace_chosen && own != flag) {
            return Err(Failure::Usage(format!(
                "{text} is in namespace {own}, and --namespace is {flag}. Leave one of them out"
            )));
        }
        Ok(Self { kinds, namespace: namespace.unwrap_or(flag), name })
    }

    /// Full name of the kind, namespace and name of each environment.
    fn keys(&self) -> impl Iterator<Item = Key> {
        let key = |kind: &Kind| (kind.full_name(), self.namespace.to_owned(), self.name.to_owned());
        self.kinds.iter().map(key)
    }
}

/// Full name of the kind, namespace and name.
type Key = (String, String, String);

/// Finds many environments. Lists each possible kind once, and keeps only the requested
/// environments.
async fn among<O>(
    cluster: &Cluster,
    kinds: &Kinds,
    names: &[String],
    read: &impl Fn(DynamicObject) -> O,
) -> Result<Vec<Result<Found<O>, Failure>>, Failure> {
    let meant: Vec<_> =
        names.iter().map(|text| (text, Candidates::parse(cluster, kinds, text))).collect();
    let mut wanted: BTreeMap<(String, &str), BTreeSet<&str>> = BTreeMap::new();
    for one in meant.iter().filter_map(|(_, meant)| meant.as_ref().ok()) {
        for kind in &one.kinds {
            wanted.entry((kind.full_name(), one.namespace)).or_default().insert(one.name);
        }
    }
    let of_kind = |full_name: &str| kinds.all().iter().find(|kind| kind.full_name() == full_name);
    let asked = wanted
        .iter()
        .filter_map(|((kind, namespace), names)| Some((of_kind(kind)?, *namespace, names)));
    let lists = stream::iter(asked).map(|(kind, namespace, names)| async move {
        (kind, namespace, named(cluster, kind, namespace, names, read).await)
    });
    let mut lists = lists.buffered(CONCURRENCY);
    let mut found: BTreeMap<Key, Found<O>> = BTreeMap::new();
    let mut denied: BTreeMap<(String, &str), kube::Error> = BTreeMap::new();
    while let Some((kind, namespace, list)) = lists.next().await {
        match list {
            Ok(all) => found.extend(
                all.into_iter()
                    .map(|(name, one)| ((kind.full_name(), namespace.to_owned(), name), one)),
            ),
            Err(error) if is_denied(&error) => {
                denied.insert((kind.full_name(), namespace), error);
            }
            Err(error) => return Err(cluster.explain(&error, &format!("list {}", kind.name()))),
        }
    }
    drop(lists);
    let picked = |(text, meant): (&String, Result<Candidates<'_>, Failure>)| {
        let meant = meant?;
        let namespace = meant.namespace;
        let refused = meant
            .kinds
            .iter()
            .find_map(|kind| Some((kind, denied.get(&(kind.full_name(), namespace))?)));
        let refused = refused.map(|(kind, error)| {
            cluster.explain(error, &format!("list {} in namespace {namespace}", kind.name()))
        });
        let there = meant.keys().filter(|key| found.contains_key(key));
        let there = there.map(|key| (key.0.clone(), key)).collect();
        pick(namespace, text, there, refused)
    };
    let picked: Vec<_> = meant.into_iter().map(picked).collect();
    // A repeated name is skipped: its first occurrence has taken the environment.
    let taken = picked.into_iter().filter_map(|one| match one {
        Ok(key) => found.remove(&key).map(Ok),
        Err(failure) => Some(Err(failure)),
    });
    Ok(taken.collect())
}

/// The environments of a kind in a namespace with one of these names, by name.
async fn named<O>(
    cluster: &Cluster,
    kind: &Kind,
    namespace: &str,
    names: &BTreeSet<&str>,
    read: &impl Fn(DynamicObject) -> O,
) -> kube::Result<BTreeMap<String, Found<O>>> {
    let mut found = BTreeMap::new();
    let mut pages = pin!(pages(cluster, kind, Some(namespace), None));
    while let Some(page) = pages.try_next().await? {
        let listed = page.metadata.resource_version;
        for object in page.items {
            let name = object.metadata.name.clone().unwrap_or_default();
            if names.contains(name.as_str()) {
                let one =
                    Found { kind: kind.clone(), object: read(object), listed: listed.clone() };
                found.insert(name, one);
            }
        }
    }
    Ok(found)
}

/// A kind's environments, one page at a time. A whole page is in memory. All pages have the same
/// version.
pub fn pages(
    cluster: &Cluster,
    kind: &Kind,
    namespace: Option<&str>,
    labels: Option<&Selector>,
) -> impl Stream<Item = kube::Result<ObjectList<DynamicObject>>> {
    const PAGE: u32 = 100;
    let api = kind.api(&cluster.client, namespace);
    let types =
        TypeMeta { api_version: kind.resource.api_version.clone(), kind: kind.name().to_owned() };
    let first = labels.map(Selector::list_params).unwrap_or_default().limit(PAGE);
    stream::try_unfold(Some(first), move |params| {
        let (api, types) = (api.clone(), types.clone());
        async move {
            let Some(params) = params else { return Ok(None) };
            let mut page = api.list(&params).await?;
            let next = page.metadata.continue_.take().filter(|token| !token.is_empty());
            let next = next.map(|token| params.continue_token(&token));
            // The items of a list lack their type. Only the list has it.
            for object in &mut page.items {
                object.types = Some(types.clone());
            }
            Ok(Some((page, next)))
        }
    })
}

/// The only found environment. Each has its kind's full name. If there is none, a denied kind is an
/// error, because it could contain the environment.
fn pick<T>(
    namespace: &str,
    text: &str,
    mut found: Vec<(String, T)>,
    denied: Option<Failure>,
) -> Result<T, Failure> {
    match (found.len(), denied) {
        (1, _) => Ok(found.remove(0).1),
        (0, Some(failure)) => Err(failure),
        (0, None) => Err(Failure::Absent(format!(
            "no environment {text} in namespace {namespace}. Run `paved list -A` to list all \
             environments"
        ))),
        _ => {
            let (place, name) = match text.split('/').collect::<Vec<_>>()[..] {
                [namespace, _, name] => (format!("{namespace}/"), name),
                [.., name] => (String::new(), name),
                [] => (String::new(), text),
            };
            let full = |kind: &String| format!("{place}{}/{name}", kind.to_lowercase());
            let all: Vec<String> = found.iter().map(|(kind, _)| full(kind)).collect();
            Err(Failure::Usage(format!(
                "{text} is the name of several environments. Use one of {}",
                all.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cluster::samples::{kinds, nowhere};

    fn found(kind: &str) -> Found {
        let kind = kinds().called(kind).unwrap().remove(0);
        Found { object: DynamicObject::new("ada", &kind.resource), kind, listed: None }
    }

    fn candidate(kind: &str) -> (String, Found) {
        let found = found(kind);
        (found.kind.full_name(), found)
    }

    fn none() -> Vec<(String, Found)> {
        Vec::new()
    }

    #[test]
    fn name_selects_its_only_environment() {
        assert_eq!(
            pick("team", "ada", vec![candidate("gpuws")], None).unwrap().kind.name(),
            "GpuDevWorkspaceClaim"
        );
        let denied = || Some(Failure::NoAccess { message: "no".into(), check: "x".into() });
        assert!(
            pick("team", "ada", vec![candidate("gpuws")], denied()).is_ok(),
            "denied kinds do not matter"
        );
        assert!(matches!(pick("team", "ada", none(), denied()), Err(Failure::NoAccess { .. })));
        assert!(matches!(pick("team", "ada", none(), None), Err(Failure::Absent(_))));
    }

    #[tokio::test]
    async fn a_name_that_several_have_lists_them_as_they_can_be_typed() {
        let both = vec![candidate("gpuws"), candidate("environment.dev.example.org")];
        let told = pick("team", "ada", both, None).unwrap_err().to_string();
        for one in ["gpudevworkspaceclaim.platform.acme.io/ada", "environment.dev.example.org/ada"]
        {
            assert!(told.contains(one), "{told}");
            assert_eq!(Candidates::parse(&nowhere(), &kinds(), one).unwrap().kinds.len(), 1);
        }
    }

    #[test]
    fn environment_named_twice_is_returned_once() {
        let absent = || Err(Failure::Absent(String::new()));
        let named = ["gpuws", "environment.dev.example.org", "gpuws"].map(|kind| Ok(found(kind)));
        let each = once(named.into_iter().chain([absent(), absent()]).collect());
        let kinds: Vec<_> = each.iter().flatten().map(|one| one.kind.name()).collect();
        assert_eq!((each.len(), kinds), (4, vec!["GpuDevWorkspaceClaim", "Environment"]));
    }

    #[tokio::test]
    async fn invalid_name_is_a_usage_error() {
        for text in [
            "",
            "/",
            "//",
            "gpuws/",
            "team/gpuws/",
            "/gpuws/ada",
            "team//ada",
            "team/ada/gpuws",
            "a/team/gpuws/ada",
            "nokind/ada",
            "Team/gpuws/ada",
            "../gpuws/ada",
        ] {
            let cluster = nowhere();
            let parsed = Candidates::parse(&cluster, &kinds(), text);
            assert!(matches!(parsed, Err(Failure::Usage(_))), "{text}");
        }
    }

    #[tokio::test]
    async fn namespace_of_a_name_overrides_the_default_and_conflicts_with_the_flag() {
        let mut cluster = nowhere();
        let name = "audio/gpudevworkspaceclaim.platform.acme.io/ada";
        let namespace = |cluster: &Cluster| {
            Candidates::parse(cluster, &kinds(), name).map(|one| one.namespace.to_owned())
        };
        assert_eq!(namespace(&cluster).unwrap(), "audio");
        cluster.is_namespace_chosen = true;
        let message = namespace(&cluster).unwrap_err().to_string();
        let words = "ada is in namespace audio, and --namespace is team. Leave one of them out";
        assert!(message.ends_with(words), "{message}");
        cluster.namespace = "audio".to_owned();
        assert_eq!(namespace(&cluster).unwrap(), "audio");
    }

    #[test]
    fn ambiguous_name_in_a_namespace_lists_full_names() {
        let two = || vec![candidate("gpuws"), candidate("environment.dev.example.org")];
        let message = pick("audio", "audio/x/ada", two(), None).unwrap_err().to_string();
        let words = "audio/gpudevworkspaceclaim.platform.acme.io/ada, audio/environment.dev";
        assert!(message.contains(words), "{message}");
    }
}
