//! `paved platform uninstall` on fake clusters.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use fake_kube::access::{Access, User};
use fake_kube::faults::Failure;
use fake_kube::kinds::{Kind, Kinds};
use fake_kube::{Cluster, Server};
use function_paved_road::apis::{APIS, Flavour};
use function_paved_road::manifests::{self, installation, policy};
use jiff::Timestamp;
use k8s_schema::Schemas;
use serde_json::{Value, json};
use support::{Run, folder, paved_typed, within};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A company's own group.
const GROUP: &str = "platform.example.org";

/// The name of the installed Function.
const FUNCTION: &str = "paved-road-function-paved-road";

/// Kinds that the fake cluster does not have by itself: group, version and kind.
const KINDS: [(&str, &str, &str, &str); 10] = [
    ("pkg.crossplane.io", "v1", "Configuration", "configurations"),
    ("pkg.crossplane.io", "v1", "ConfigurationRevision", "configurationrevisions"),
    ("pkg.crossplane.io", "v1beta1", "Lock", "locks"),
    ("pkg.crossplane.io", "v1beta1", "DeploymentRuntimeConfig", "deploymentruntimeconfigs"),
    (
        "apiextensions.crossplane.io",
        "v1alpha1",
        "ManagedResourceActivationPolicy",
        "managedresourceactivationpolicies",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    ),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("helm.crossplane.io", "v1beta1", "ProviderConfig", "providerconfigs"),
];

/// A cluster with an installation of the claims APIs.
struct World {
    cluster: Arc<Cluster>,
    home: TempDir,
    _server: Server,
    collector: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.collector.abort();
    }
}

impl World {
    /// The objects of the chart, of other teams, and Crossplane's garbage collector.
    async fn new() -> Self {
        let names = |kind: &str, plural: &str| json!({"kind": kind, "plural": plural});
        let mut kinds: Vec<Kind> = KINDS
            .iter()
            .map(|(group, version, kind, plural)| {
                Kind::from_names(group, version, &names(kind, plural), false)
            })
            .collect();
        for api in APIS {
            let info = api.info();
            let claim = json!({"kind": info.claim.kind, "plural": info.claim.plural,
                "categories": ["paved", "claim"]});
            kinds.push(Kind::from_names(GROUP, "v1alpha1", &claim, true));
            let composite = names(info.composite.kind, info.composite.plural);
            kinds.push(Kind::from_names(GROUP, "v1alpha1", &composite, false));
        }
        let kinds = Kinds::new(kinds, Schemas::new([].iter()).unwrap(), Vec::new());
        let cluster = Arc::new(Cluster::new(kinds, Access::open(User::new("ada", &[]))));
        let server = Server::start(Arc::clone(&cluster)).await.unwrap();
        let kubeconfig = server.kubeconfig("c", "default", &json!({})).to_string();
        let home = folder(&[("kubeconfig", kubeconfig.as_str())]);
        let there = Arc::clone(&cluster);
        let collector = tokio::spawn(async move {
            loop {
                collect(&there);
                sleep(Duration::from_millis(20)).await;
            }
        });
        let world = Self { cluster, home, _server: server, collector };
        world.install();
        world.add_others();
        world
    }

    /// The objects that the chart keeps.
    fn install(&self) {
        for api in APIS {
            self.put(&manifests::xrd(*api, Flavour::Claims, GROUP));
            self.put(&manifests::installed_composition(*api, Flavour::Claims, GROUP, FUNCTION));
        }
        let package = "registry.example.org/paved-road/function-paved-road:v0.2.0";
        self.named("pkg.crossplane.io/v1", "Function", FUNCTION, &json!({"package": package}));
        for config in ["function-paved-road", "provider-kubernetes", "provider-helm"] {
            self.named("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", config, &json!({}));
        }
        for policy in policy::policies(&[(Flavour::Claims, GROUP)], policy::CROSSPLANE) {
            self.put(&policy);
        }
        let activation = format!("gpudevworkspaces.{GROUP}");
        let version = "apiextensions.crossplane.io/v1alpha1";
        self.named(version, "ManagedResourceActivationPolicy", &activation, &json!({}));
        let roles = installation::ROLES.map(str::to_owned).into_iter();
        for role in roles.chain(installation::roles(GROUP)) {
            self.named("rbac.authorization.k8s.io/v1", "ClusterRole", &role, &json!({}));
        }
        let binding = "paved-road-provider-helm";
        self.named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", binding, &json!({}));
        self.put(&manifests::environment_config(serde_json::Map::new()));
        let spec = |name: &str| {
            json!({"package": format!("xpkg.crossplane.io/crossplane-contrib/{name}:v1.2.1"),
                "runtimeConfigRef": {"name": name}})
        };
        for name in ["provider-kubernetes", "provider-helm"] {
            let installed = format!("crossplane-contrib-{name}");
            self.named("pkg.crossplane.io/v1", "Provider", &installed, &spec(name));
        }
    }

    /// Objects of other teams, which must stay.
    fn add_others(&self) {
        let mut other = manifests::xrd(APIS[0], Flavour::Claims, "other.example.org");
        for names in ["names", "claimNames"] {
            other["spec"][names]["categories"] = json!(["other"]);
        }
        self.put(&other);
        self.named("pkg.crossplane.io/v1", "Function", "function-auto-ready", &json!({}));
        self.named("pkg.crossplane.io/v1", "Configuration", "network", &json!({}));
        self.named(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "paved-road-of-others",
            &json!({}),
        );
        let settings = "apiextensions.crossplane.io/v1beta1";
        self.named(settings, "EnvironmentConfig", "network", &json!({}));
        let runtime = "pkg.crossplane.io/v1beta1";
        self.named(runtime, "DeploymentRuntimeConfig", "default", &json!({}));
    }

    fn put(&self, object: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let kind = self.cluster.kinds.for_object(object).unwrap();
        let key = kind.key(text("namespace"), text("name"));
        self.cluster.store.put(&key, Timestamp::now(), |_| Some(object.clone())).unwrap();
    }

    fn named(&self, api_version: &str, kind: &str, name: &str, spec: &Value) {
        self.put(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name},
            "spec": spec}));
    }

    /// All objects as `Kind name`, in order.
    fn titles(&self) -> Vec<String> {
        let mut titles = Vec::new();
        for key in self.cluster.store.keys() {
            let kind = self.cluster.kinds.all().iter().find(|kind| kind.resource() == key.resource);
            titles.push(format!("{} {}", kind.unwrap().name, key.name));
        }
        titles.sort();
        titles
    }

    /// The objects of other teams, and Crossplane's.
    fn is_left_to_others(&self) {
        let expected = [
            "CompositeResourceDefinition xapplicationenvironments.other.example.org",
            "Configuration network",
            "DeploymentRuntimeConfig default",
            "DeploymentRuntimeConfig provider-helm",
            "DeploymentRuntimeConfig provider-kubernetes",
            "EnvironmentConfig network",
            "Function function-auto-ready",
            "Provider crossplane-contrib-provider-helm",
            "Provider crossplane-contrib-provider-kubernetes",
            "ClusterRole paved-road-of-others",
        ];
        let mut expected = expected.map(str::to_owned).to_vec();
        expected.retain(|one| !one.starts_with("CompositeResourceDefinition "));
        expected.push(format!(
            "CompositeResourceDefinition {}.other.example.org",
            APIS[0].info().composite.plural
        ));
        expected.sort();
        assert_eq!(self.titles(), expected);
    }

    async fn uninstall(&self, args: &[&str], typed: Option<&'static str>) -> Run {
        let kubeconfig = within(&self.home, "kubeconfig");
        let kubeconfig = ["--kubeconfig", kubeconfig.as_str()];
        paved_typed(&[&["platform", "uninstall"], args, &kubeconfig[..]].concat(), typed).await
    }

    /// The kinds of the deleted objects, in the order of their deletion.
    fn deleted(&self) -> Vec<String> {
        let mut kinds = Vec::new();
        for request in self.cluster.requests().iter().filter(|one| one.method == "DELETE") {
            let kind = request.path.rsplit('/').nth(1).unwrap().to_owned();
            if kinds.last() != Some(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}

/// Deletes objects whose owner does not exist any more.
fn collect(cluster: &Cluster) {
    for kind in cluster.kinds.all() {
        let (_, objects) = cluster.store.list(&kind.resource(), None);
        for (key, object) in objects {
            let Some(owner) = object["metadata"]["ownerReferences"][0].as_object() else {
                continue;
            };
            let owners = cluster.kinds.all().iter().find(|one| owner["kind"] == one.name).unwrap();
            let name = owner["name"].as_str().unwrap();
            if cluster.store.get(&owners.key("", name)).is_none() {
                cluster.store.put(&key, Timestamp::now(), |_| None);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn platform_is_removed_in_order_and_others_stay() {
    let world = World::new().await;
    let run = world.uninstall(&["--yes"], None).await;
    assert_eq!(run.code, 0, "{}", run.told());
    assert_eq!(
        world.deleted(),
        [
            "compositions",
            "compositeresourcedefinitions",
            "functions",
            "managedresourceactivationpolicies",
            "deploymentruntimeconfigs",
            "clusterrolebindings",
            "clusterroles",
            "validatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "environmentconfigs",
        ]
    );
    world.is_left_to_others();
    let providers = "crossplane-contrib-provider-helm, crossplane-contrib-provider-kubernetes";
    assert!(run.out.contains(&format!("left: Crossplane and the providers {providers}")));
    assert!(run.out.contains("left: the runtime configs of providers"), "{}", run.out);
    let again = world.uninstall(&["--yes"], None).await;
    assert!(again.code == 0 && again.out.starts_with("Paved Road is not installed at"));
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstall_refuses_while_an_environment_exists() {
    let info = APIS[0].info();
    let claim = json!({"name": "shop", "namespace": "team-a"});
    let labels = json!({"crossplane.io/claim-name": "shop",
        "crossplane.io/claim-namespace": "team-a"});
    let composite = json!({"name": "shop-x", "labels": labels});
    let object = |kind: &str, metadata: &Value| json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": metadata});
    let (claim, composite) =
        (object(info.claim.kind, &claim), object(info.composite.kind, &composite));
    let lower = info.claim.kind.to_lowercase();
    let by_paved = format!("paved delete {lower}/shop -n team-a --wait");
    let by_kubectl = format!("kubectl delete {}.{GROUP} shop-x", info.composite.plural);
    for (objects, command) in [
        (vec![&claim], &by_paved),
        // The composite counts with its claim.
        (vec![&claim, &composite], &by_paved),
        (vec![&composite], &by_kubectl),
    ] {
        let world = World::new().await;
        for object in objects {
            world.put(object);
        }
        let before = world.titles();
        let run = world.uninstall(&["--yes", "--providers"], None).await;
        assert_eq!(run.code, 1, "{}", run.told());
        for words in ["1 environment exists: ", "Nothing was deleted", command] {
            assert!(run.err.replace("\n  ", " ").contains(words), "{words}: {}", run.err);
        }
        assert_eq!(world.titles(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_agreement_uninstalls() {
    let world = World::new().await;
    let before = world.titles();
    for (typed, words) in [(None, "Use --yes"), (Some("n\n"), "cancelled")] {
        let run = world.uninstall(&[], typed).await;
        assert_eq!(run.code, 1, "{}", run.told());
        assert!(run.err.contains(words) && run.err.contains("Nothing was deleted"), "{}", run.err);
        assert!(run.err.contains(&format!("Function: Function {FUNCTION}")), "{}", run.err);
    }
    assert_eq!(world.titles(), before);
    let run = world.uninstall(&[], Some("y\n")).await;
    assert_eq!(run.code, 0, "{}", run.told());
    world.is_left_to_others();
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_uninstall_continues_at_each_step() {
    let steps = [
        format!("compositeresourcedefinitions/gpudevworkspaces.{GROUP}"),
        format!("functions/{FUNCTION}"),
        "deploymentruntimeconfigs/function-paved-road".to_owned(),
        "clusterroles/paved-road-user".to_owned(),
        format!("validatingadmissionpolicies/paved-road-claims.{GROUP}"),
        "environmentconfigs/paved-road".to_owned(),
    ];
    for path in steps {
        let world = World::new().await;
        let message = "try later";
        let failure =
            Failure { verb: "delete", path: path.clone(), code: 403, message, is_executed: false };
        world.cluster.faults.fail(failure);
        let run = world.uninstall(&["--yes"], None).await;
        assert!(run.code != 0 && run.err.contains(message), "{path}: {}", run.told());
        world.cluster.faults.mend();
        let run = world.uninstall(&["--yes"], None).await;
        assert_eq!(run.code, 0, "{path}: {}", run.told());
        world.is_left_to_others();
    }
}

/// Crossplane deletes the XRDs and Compositions of a Configuration. Its name can be any.
#[tokio::test(flavor = "multi_thread")]
async fn apis_of_configurations_end_with_them() {
    let world = World::new().await;
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "name": name, "uid": "1"}]);
    let metadata = json!({"name": "gpu-1", "labels": {"pkg.crossplane.io/package": "gpu"},
        "ownerReferences": owner("Configuration", "gpu")});
    let version = "pkg.crossplane.io/v1";
    world.named(version, "Configuration", "gpu", &json!({"package": "mirror.example.org/x:v1"}));
    world.put(&json!({"apiVersion": version, "kind": "ConfigurationRevision",
        "metadata": metadata}));
    for api in APIS {
        let mut xrd = manifests::xrd(*api, Flavour::Claims, GROUP);
        let mut composition =
            manifests::installed_composition(*api, Flavour::Claims, GROUP, FUNCTION);
        for object in [&mut xrd, &mut composition] {
            object["metadata"]["ownerReferences"] = owner("ConfigurationRevision", "gpu-1");
        }
        world.put(&xrd);
        world.put(&composition);
    }
    let package = "r.example.org/a/configuration-stock-pool-claims@sha256:12";
    world.named(version, "Configuration", "pool", &json!({"package": package}));
    let run = world.uninstall(&["--yes"], None).await;
    assert_eq!(run.code, 0, "{}", run.told());
    let deleted = world.deleted();
    assert_eq!(deleted[..2], ["configurations", "functions"], "{deleted:?}");
    world.is_left_to_others();
}

#[tokio::test(flavor = "multi_thread")]
async fn function_of_other_compositions_stays_with_its_roles_and_settings() {
    let world = World::new().await;
    let mut other =
        manifests::installed_composition(APIS[0], Flavour::Claims, "other.example.org", FUNCTION);
    other["metadata"]["name"] = json!("ours");
    other["spec"]["compositeTypeRef"]["kind"] = json!("XNetwork");
    world.put(&other);
    let run = world.uninstall(&["--yes"], None).await;
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.err.contains("other Compositions use"), "{}", run.err);
    let left = world.titles();
    for title in [
        format!("Function {FUNCTION}"),
        "EnvironmentConfig paved-road".to_owned(),
        "DeploymentRuntimeConfig function-paved-road".to_owned(),
        "ClusterRole paved-road:aggregate-to-crossplane".to_owned(),
    ] {
        assert!(left.contains(&title), "{title}: {left:?}");
    }
    assert!(!left.iter().any(|title| title.ends_with(GROUP)), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_with_objects_or_dependents_stay() {
    let world = World::new().await;
    let definition = |name: &str, provider: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "ownerReferences": [{"apiVersion": "pkg.crossplane.io/v1",
                "kind": "Provider", "name": provider, "uid": "1"}]}})
    };
    let [helm, kubernetes, family, ec2] = ["helm", "kubernetes", "family-aws", "aws-ec2"]
        .map(|name| format!("crossplane-contrib-provider-{name}"));
    world.put(&definition("providerconfigs.helm.crossplane.io", &helm));
    world.named("helm.crossplane.io/v1beta1", "ProviderConfig", "default", &json!({}));
    let package = |name: &str| format!("xpkg.crossplane.io/crossplane-contrib/{name}");
    for (name, of) in [(&family, "provider-family-aws"), (&ec2, "provider-aws-ec2")] {
        let spec = json!({"package": format!("{}:v2.6.0", package(of))});
        world.named("pkg.crossplane.io/v1", "Provider", name, &spec);
    }
    let locked = |source: &str, needed: &str| json!({"source": source, "dependencies": [{"package": needed}]});
    let mut lock = json!({"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock",
    "metadata": {"name": "lock"}, "packages": [
        locked(&package("provider-aws-ec2"), &package("provider-family-aws")),
        locked("x.example.org/network", &package("provider-kubernetes")),
        locked("r.example.org/a/configuration-gpu-workspace-claims", &package("provider-aws-ec2")),
    ]});
    world.put(&lock);
    let run = world.uninstall(&["--yes", "--providers"], None).await;
    assert_eq!(run.code, 0, "{}", run.told());
    assert!(run.err.contains(&format!("{helm} (ProviderConfig)")), "{}", run.err);
    let providers = || -> Vec<String> {
        let titles = world.titles().into_iter();
        titles.filter_map(|one| one.strip_prefix("Provider ").map(str::to_owned)).collect()
    };
    assert_eq!(providers(), [helm.clone(), kubernetes]);
    let deletions = world.cluster.requests().into_iter().filter(|one| one.method == "DELETE");
    let deletions: Vec<String> = deletions.map(|one| one.path).collect();
    let place = |name: &str| deletions.iter().position(|path| path.ends_with(name)).unwrap();
    assert!(place(&ec2) < place(&family), "Crossplane would install the family again");
    // The runtime configs stay with their providers.
    assert!(world.titles().contains(&"DeploymentRuntimeConfig provider-helm".to_owned()));

    lock["packages"] = json!([]);
    world.put(&lock);
    let run = world.uninstall(&["--yes", "--providers"], None).await;
    assert_eq!(run.code, 0, "{}", run.told());
    assert_eq!(providers(), [helm]);
    let left = world.titles();
    assert!(!left.contains(&"DeploymentRuntimeConfig provider-kubernetes".to_owned()), "{left:?}");
}
