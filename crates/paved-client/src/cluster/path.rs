//! Paths of the API server. Names are from objects that users write, and the client inserts them
//! into URLs unescaped. `../../kube-system/secrets/x` or `x?watch=1` would reach another path. So
//! every path in this crate is built here, from checked segments. A test rejects `kube::Api` in all
//! other files.

use std::fmt::{self, Debug, Display, Formatter};

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::api::{
    DeleteParams, ListParams, ObjectList, Patch, PatchParams, Portforwarder, PostParams,
};
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use kube::core::request::Error as Invalid;
use kube::core::{ApiResource, ClusterResourceScope, NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest name that Kubernetes allows.
const MAX_SEGMENT_LEN: usize = 253;

/// How many characters of an invalid name an error quotes.
const QUOTED: usize = 80;

/// One segment of a URL path: ASCII letters, digits and `-`, `.`, `_`, `:`. It is neither empty nor
/// `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment(String);

/// A text that cannot be one segment of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct NotASegment(String);

impl Segment {
    /// Parses a segment. Fails if the text cannot be one segment of a path.
    pub fn parse(text: &str) -> Result<Self, NotASegment> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
        let is_one = !text.is_empty() && text.len() <= MAX_SEGMENT_LEN && text.chars().all(fits);
        if is_one && text != "." && text != ".." {
            return Ok(Self(text.to_owned()));
        }
        Err(NotASegment(text.chars().take(QUOTED).collect()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Segment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Display for NotASegment {
    /// The text is quoted with escapes, so that it cannot control a terminal.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "found the name {:?}; allowed: letters, digits and the characters - . _ :",
            self.0
        )
    }
}

impl From<NotASegment> for kube::Error {
    fn from(error: NotASegment) -> Self {
        Self::BuildRequest(Invalid::Validation(error.to_string()))
    }
}

/// The message of an error about an invalid name in a path.
pub fn invalid_name(error: &kube::Error) -> Option<&str> {
    match error {
        kube::Error::BuildRequest(Invalid::Validation(message)) => Some(message),
        _ => None,
    }
}

/// The objects of one kind, in one namespace or in all. Its methods are those of `kube::Api`. They
/// send no request if a name or the namespace is not one segment.
pub struct Api<K>(Result<kube::Api<K>, NotASegment>);

impl<K: Clone> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Resource<Scope = NamespaceResourceScope>> Api<K>
where
    K::DynamicType: Default,
{
    /// The objects of a built-in kind in a namespace.
    pub fn namespaced(client: Client, namespace: &str) -> Self {
        Self(
            Segment::parse(namespace)
                .map(|namespace| kube::Api::namespaced(client, namespace.as_str())),
        )
    }
}

impl<K: Resource<Scope = ClusterResourceScope>> Api<K>
where
    K::DynamicType: Default,
{
    /// The objects of a built-in kind that has no namespace.
    pub fn all(client: Client) -> Self {
        Self(Ok(kube::Api::all(client)))
    }
}

impl Api<DynamicObject> {
    /// The objects of a kind, in the given namespace or in the whole cluster.
    pub fn for_resource(client: &Client, namespace: Option<&str>, resource: &ApiResource) -> Self {
        let api = || {
            Segment::parse(&resource.version)?;
            Segment::parse(&resource.plural)?;
            // The core group has no name.
            if !resource.group.is_empty() {
                Segment::parse(&resource.group)?;
            }
            let namespace = namespace.map(Segment::parse).transpose()?;
            Ok(match namespace {
                Some(name) => kube::Api::namespaced_with(client.clone(), name.as_str(), resource),
                None => kube::Api::all_with(client.clone(), resource),
            })
        };
        Self(api())
    }
}

impl<K: Resource + Clone + DeserializeOwned + Debug> Api<K> {
    fn collection(&self) -> kube::Result<&kube::Api<K>> {
        Ok(self.0.as_ref().map_err(Clone::clone)?)
    }

    fn object(&self, name: &str) -> kube::Result<(&kube::Api<K>, Segment)> {
        Ok((self.collection()?, Segment::parse(name)?))
    }

    /// The namespace, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        self.0.as_ref().ok()?.namespace()
    }

    /// Reads an object.
    pub async fn get(&self, name: &str) -> kube::Result<K> {
        let (api, name) = self.object(name)?;
        api.get(name.as_str()).await
    }

    /// Reads an object. Returns `None` if it does not exist.
    pub async fn get_opt(&self, name: &str) -> kube::Result<Option<K>> {
        let (api, name) = self.object(name)?;
        api.get_opt(name.as_str()).await
    }

    /// Lists objects.
    pub async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<K>> {
        self.collection()?.list(params).await
    }

    /// Lists objects, only with their metadata.
    pub async fn list_metadata(
        &self,
        params: &ListParams,
    ) -> kube::Result<ObjectList<PartialObjectMeta<K>>> {
        self.collection()?.list_metadata(params).await
    }

    /// Creates an object. Its name is in the body only.
    pub async fn create(&self, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Serialize,
    {
        self.collection()?.create(params, object).await
    }

    /// Replaces an object.
    pub async fn replace(&self, name: &str, params: &PostParams, object: &K) -> kube::Result<K>
    where
        K: Serialize,
    {
        let (api, name) = self.object(name)?;
        api.replace(name.as_str(), params, object).await
    }

    /// Patches an object.
    pub async fn patch<P: Serialize + Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let (api, name) = self.object(name)?;
        api.patch(name.as_str(), params, patch).await
    }

    /// Patches the status of an object.
    pub async fn patch_status<P: Serialize + Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let (api, name) = self.object(name)?;
        api.patch_status(name.as_str(), params, patch).await
    }

    /// Deletes an object.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> kube::Result<()> {
        let (api, name) = self.object(name)?;
        api.delete(name.as_str(), params).await.map(drop)
    }

    /// Watches all objects since a version.
    pub async fn watch(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<impl Stream<Item = kube::Result<WatchEvent<K>>> + use<K>> {
        self.collection()?.watch(params, version).await
    }

    /// Lists all objects, and then watches them.
    pub fn watcher(
        &self,
        config: watcher::Config,
    ) -> BoxStream<'static, Result<watcher::Event<K>, watcher::Error>>
    where
        K: Send + 'static,
    {
        match self.collection() {
            Ok(api) => watcher(api.clone(), config).boxed(),
            Err(error) => stream::iter([Err(watcher::Error::InitialListFailed(error))]).boxed(),
        }
    }
}

impl Api<k8s_openapi::api::core::v1::Pod> {
    /// Forwards to a port of a pod.
    pub async fn portforward(&self, name: &str, ports: &[u16]) -> kube::Result<Portforwarder> {
        let (api, name) = self.object(name)?;
        api.portforward(name.as_str(), ports).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::path::{Path, PathBuf};

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Secret;
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    /// Names that would reach another path, and some that are only invalid.
    const ESCAPING: [&str; 14] = [
        "",
        ".",
        "..",
        "a/b",
        "../../kube-system/secrets/x",
        "x?watch=1",
        "x#y",
        "x%2fy",
        "x\\y",
        "x;y",
        "x y",
        "x\n",
        "ä",
        "x\u{202e}",
    ];

    #[test]
    fn segment_that_could_change_the_path_is_rejected() {
        for text in ["a", "a.b", "system:masters", "v1alpha1", "A_b-1"] {
            assert_eq!(Segment::parse(text).unwrap().to_string(), text);
        }
        for text in ESCAPING {
            let error = Segment::parse(text).unwrap_err().to_string();
            assert!(!error.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}: {error}");
        }
        assert!(Segment::parse(&"a".repeat(254)).is_err());
        assert!(Segment::parse(&"/".repeat(1 << 20)).unwrap_err().to_string().len() < 200);
    }

    #[tokio::test]
    async fn request_with_an_escaping_name_is_not_sent() {
        let unreachable = service_fn(|request: Request<Body>| async move {
            panic!("sent {}", request.uri());
            #[allow(unreachable_code)]
            Ok::<_, std::io::Error>(Response::new(Body::empty()))
        });
        let client = Client::new(unreachable, "default");
        for name in ESCAPING {
            let here: Api<Secret> = Api::namespaced(client.clone(), "team");
            let elsewhere: Api<Secret> = Api::namespaced(client.clone(), name);
            let error = here.get(name).await.unwrap_err();
            let told = invalid_name(&error).unwrap();
            assert!(told.contains("; allowed: letters, digits and"), "{name:?}: {error}");
            assert!(here.delete(name, &DeleteParams::default()).await.is_err());
            let (params, patch) = (PatchParams::default(), Patch::Merge(serde_json::json!({})));
            assert!(here.patch(name, &params, &patch).await.is_err());
            assert!(here.replace(name, &PostParams::default(), &Secret::default()).await.is_err());
            assert!(elsewhere.list(&ListParams::default()).await.is_err());
            assert!(elsewhere.get("x").await.is_err());
        }
    }

    fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push(path);
            }
        }
    }

    /// This test fails if another file builds a path, or a label selector.
    #[test]
    fn paths_are_built_in_this_file_alone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut all = Vec::new();
        for folder in [
            "paved/src",
            "crates/paved-client/src",
            "crates/paved-controller/src",
            "crates/paved-portal/src",
            "crates/paved-render/src",
        ] {
            sources(&root.join(folder), &mut all);
        }
        // Each allowed file checks its segments itself, or takes them from the cluster.
        let forbidden = [
            (r"\bkube(_client)?::(api::)?(\{[^;]*\b)?Api\b", "cluster/path.rs"),
            (r"\bkube(_core)?::(core::)?(\{[^;]*\b)?Request\b", "cluster/path.rs"),
            (r"\b(pinned_kind|pinned_group|oneshot)\b", "cluster/reference.rs"),
            (r"\blist_(core_)?api_\w*resources\b", "cluster/kinds.rs|cluster/served.rs"),
            (r#"format!\(\s*"[^"]*/(api|apis|namespaces)/"#, "paved-portal/src/extract.rs"),
            // An empty label selector would select every object. The doctor's are constants.
            (r"\blabel_selector: [^O]|\(\)\s*\.labels\(", "cluster/selector.rs|doctor/snapshot.rs"),
        ];
        let forbidden = forbidden.map(|(text, file)| (regex_lite::Regex::new(text).unwrap(), file));
        for path in all {
            let text = fs::read_to_string(&path).unwrap();
            for (pattern, allowed) in &forbidden {
                let found = pattern.find(&text).map(|found| found.as_str());
                let is_allowed =
                    allowed.split('|').chain(["cluster/path.rs"]).any(|file| path.ends_with(file));
                assert!(
                    found.is_none() || is_allowed,
                    "{}: {found:?}: use cluster::Api",
                    path.display()
                );
            }
        }
    }
}
