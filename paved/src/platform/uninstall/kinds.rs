//! Kinds of an installation, and objects of these kinds.

use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use paved_client::cluster::{Api, Cluster};

use crate::failure::Failure;
use crate::style::harmless_name;

/// Group, version, kind and plural.
pub(super) struct Known(&'static str, &'static str, &'static str, &'static str);

const APIS: &str = "apiextensions.crossplane.io";
const PACKAGES: &str = "pkg.crossplane.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) const DEFINITIONS: Known =
    Known(APIS, "v1", "CompositeResourceDefinition", "compositeresourcedefinitions");
pub(super) const COMPOSITIONS: Known = Known(APIS, "v1", "Composition", "compositions");
pub(super) const ACTIVATION: Known =
    Known(APIS, "v1alpha1", "ManagedResourceActivationPolicy", "managedresourceactivationpolicies");
pub(super) const SETTINGS: Known =
    Known(APIS, "v1beta1", "EnvironmentConfig", "environmentconfigs");
pub(super) const CONFIGURATIONS: Known = Known(PACKAGES, "v1", "Configuration", "configurations");
pub(super) const CONFIGURATION_REVISIONS: Known =
    Known(PACKAGES, "v1", "ConfigurationRevision", "configurationrevisions");
pub(super) const FUNCTIONS: Known = Known(PACKAGES, "v1", "Function", "functions");
pub(super) const PROVIDERS: Known = Known(PACKAGES, "v1", "Provider", "providers");
pub(super) const PROVIDER_REVISIONS: Known =
    Known(PACKAGES, "v1", "ProviderRevision", "providerrevisions");
pub(super) const LOCKS: Known = Known(PACKAGES, "v1beta1", "Lock", "locks");
pub(super) const RUNTIME_CONFIGS: Known =
    Known(PACKAGES, "v1beta1", "DeploymentRuntimeConfig", "deploymentruntimeconfigs");
pub(super) const POLICIES: Known =
    Known(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
pub(super) const POLICY_BINDINGS: Known =
    Known(ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");
pub(super) const ROLES: Known = Known(RBAC, "v1", "ClusterRole", "clusterroles");
pub(super) const ROLE_BINDINGS: Known =
    Known(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings");
pub(super) const DEPLOYMENTS: Known = Known("apps", "v1", "Deployment", "deployments");

/// The label of a package's revisions with the name of the package.
pub(super) const PACKAGE_LABEL: &str = "pkg.crossplane.io/package";

impl Known {
    pub(super) fn resource(&self) -> ApiResource {
        let Self(group, version, kind, plural) = *self;
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        }
    }

    /// All objects of the kind. A kind that the cluster does not serve has none.
    pub(super) async fn list(&self, cluster: &Cluster) -> Result<Vec<DynamicObject>, Failure> {
        let resource = self.resource();
        match api(cluster, &resource).list(&ListParams::default()).await {
            Ok(list) => Ok(list.items),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(cluster.explain(&error, &format!("list {}", resource.plural)).into()),
        }
    }

    /// The objects of the kind with one of these names.
    pub(super) async fn named(
        &self,
        cluster: &Cluster,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Object>, Failure> {
        let found = self.list(cluster).await?.into_iter().map(|one| self.object(&one));
        Ok(found.filter(|object| is_wanted(&object.name)).collect())
    }

    /// The revisions of these packages, by their label. Crossplane installs the dependencies of a
    /// package until its last revision is gone.
    pub(super) async fn of_packages(
        &self,
        cluster: &Cluster,
        packages: &[Object],
    ) -> Result<Vec<Object>, Failure> {
        let is_of = |revision: &DynamicObject| {
            let labels = revision.metadata.labels.as_ref();
            let package = labels.and_then(|labels| labels.get(PACKAGE_LABEL));
            package.is_some_and(|name| packages.iter().any(|one| one.name == *name))
        };
        let all = self.list(cluster).await?;
        Ok(all.iter().filter(|one| is_of(one)).map(|one| self.object(one)).collect())
    }

    /// The address of an object of this kind.
    pub(super) fn object(&self, object: &DynamicObject) -> Object {
        let name = object.metadata.name.clone().unwrap_or_default();
        Object { resource: self.resource(), name }
    }
}

/// An object of the cluster, without a namespace.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) resource: ApiResource,
    pub(super) name: String,
}

impl Object {
    /// `Kind name`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.resource.kind, harmless_name(&self.name))
    }

    pub(super) async fn exists(&self, cluster: &Cluster) -> Result<bool, Failure> {
        let found = api(cluster, &self.resource).get_opt(&self.name).await;
        let found =
            found.map_err(|error| cluster.explain(&error, &format!("read {}", self.title())))?;
        Ok(found.is_some())
    }
}

/// The objects of a kind in the whole cluster.
pub(super) fn api(cluster: &Cluster, resource: &ApiResource) -> Api<DynamicObject> {
    Api::for_resource(&cluster.client, None, resource)
}
