//! Secrets that managed resources read and write.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::resource::{Resource, text};
use super::{MANAGER, Trouble, written};
use crate::kubeconfig;

const CONNECTION: &str = "connection.crossplane.io/v1alpha1";

/// The existing Secrets that a resource names.
pub struct Secrets<'o> {
    client: Client,
    /// By namespace and name.
    found: BTreeMap<(String, String), Value>,
    /// The kubeconfig of the cluster behind EKS clusters.
    clusters: Option<&'o Value>,
}

impl<'o> Secrets<'o> {
    /// Reads the Secret of a resource's connection details, and all Secrets that its parameters
    /// refer to.
    pub async fn read(
        client: Client,
        object: &Value,
        clusters: Option<&'o Value>,
    ) -> Result<Self, Trouble> {
        let mut found = BTreeMap::new();
        for (namespace, name) in named(object) {
            let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
            if let Some(secret) = api.get_opt(&name).await? {
                found.insert((namespace, name), document(secret)?);
            }
        }
        Ok(Self { client, found, clusters })
    }

    /// The Secrets as documents.
    pub fn documents(&self) -> impl Iterator<Item = Value> {
        self.found.values().cloned()
    }

    /// Writes the Secrets of the resource's world with new data.
    pub async fn publish(&mut self, resource: &Resource) -> Result<(), Trouble> {
        for secret in resource.world.secrets() {
            let secret = &self.leading_somewhere(secret, resource)?;
            let key = (
                text(secret, "/metadata/namespace").to_owned(),
                text(secret, "/metadata/name").to_owned(),
            );
            let before = self.found.get(&key);
            let exists = before.is_some();
            let is_connection = connection_ref(&resource.object).as_ref() == Some(&key);
            if before.is_some_and(|before| before["data"] == secret["data"]) {
                continue;
            }
            if is_connection
                && let Some(why) = before.and_then(|before| not_ours(before, resource.uid()))
            {
                return Err(Trouble::Refused(format!(
                    "cannot create or update connection secret: {why}"
                )));
            }
            self.write(key, secret, exists, is_connection, resource).await?;
        }
        Ok(())
    }

    /// Creates the resource's connection Secret, empty, before the resource exists.
    pub async fn reserve(&mut self, resource: &Resource) -> Result<(), Trouble> {
        match connection_ref(&resource.object).filter(|key| !self.found.contains_key(key)) {
            Some(key) => self.write(key, &json!({"data": {}}), false, true, resource).await,
            None => Ok(()),
        }
    }

    /// Adds credentials for the kind with which AWS gives them: `ClusterAuth` creates a token.
    fn leading_somewhere(&self, secret: &Value, resource: &Resource) -> Result<Value, Trouble> {
        let mut secret = secret.clone();
        let (Some(clusters), "ClusterAuth") = (self.clusters, text(&resource.object, "/kind"))
        else {
            return Ok(secret);
        };
        let Some(encoded) = secret["data"]["kubeconfig"].as_str() else { return Ok(secret) };
        let decoded = BASE64_STANDARD.decode(encoded).map_err(anyhow::Error::from)?;
        let kubeconfig: Value = serde_json::from_slice(&decoded).map_err(anyhow::Error::from)?;
        let server = text(&kubeconfig, "/clusters/0/cluster/server");
        let kubeconfig = kubeconfig::at(server, clusters).to_string();
        secret["data"]["kubeconfig"] = BASE64_STANDARD.encode(kubeconfig).into();
        Ok(secret)
    }

    /// Writes a Secret, and remembers it.
    async fn write(
        &mut self,
        (namespace, name): (String, String),
        secret: &Value,
        exists: bool,
        is_connection: bool,
        resource: &Resource,
    ) -> Result<(), Trouble> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let owner = json!([{
            "apiVersion": resource.object["apiVersion"], "kind": resource.object["kind"], "name": resource.name(),
            "uid": resource.uid(), "controller": is_connection, "blockOwnerDeletion": is_connection,
        }]);
        // A Secret of another creator is filled, but not deleted with the resource.
        let metadata =
            if is_connection || !exists { json!({"ownerReferences": owner}) } else { json!({}) };
        let mut wanted = json!({"metadata": metadata, "data": secret["data"]});
        let written = if exists {
            api.patch(&name, &PatchParams::apply(MANAGER), &Patch::Merge(&wanted)).await
        } else {
            wanted["metadata"]["name"] = json!(name);
            wanted["type"] = json!(if is_connection { CONNECTION } else { "Opaque" });
            let made: Secret = serde_json::from_value(wanted).map_err(anyhow::Error::from)?;
            api.create(&written(), &made).await
        };
        match written {
            Err(kube::Error::Api(status)) if status.is_not_found() => Err(Trouble::Refused(
                format!("cannot create or update connection secret: {}", status.message),
            )),
            other => {
                self.found.insert((namespace, name), document(other?)?);
                Ok(())
            }
        }
    }
}

/// A Secret as a document.
fn document(secret: Secret) -> Result<Value, Trouble> {
    let mut document = serde_json::to_value(secret).map_err(anyhow::Error::from)?;
    document["apiVersion"] = json!("v1");
    document["kind"] = json!("Secret");
    Ok(document)
}

/// The reason why an existing Secret may not become a resource's connection Secret, if any.
fn not_ours(secret: &Value, uid: &str) -> Option<String> {
    let owners = secret["metadata"]["ownerReferences"].as_array();
    match owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
        Some(owner) if owner["uid"] == *uid => None,
        Some(_) => Some(format!("existing secret is not controlled by UID {uid:?}")),
        None if secret["type"] == CONNECTION => None,
        None => Some(format!("refusing to modify uncontrolled secret of type {}", secret["type"])),
    }
}

/// The Secret of a resource's connection details, by namespace and name.
pub fn connection_ref(object: &Value) -> Option<(String, String)> {
    place(&object["spec"]["writeConnectionSecretToRef"], text(object, "/metadata/namespace"))
}

/// The Secrets that a resource names, by namespace and name.
fn named(object: &Value) -> Vec<(String, String)> {
    let own = text(object, "/metadata/namespace");
    let params = object["spec"]["forProvider"].as_object();
    let read = params.into_iter().flatten().filter(|(field, _)| field.ends_with("SecretRef"));
    let mut all: Vec<_> = read.filter_map(|(_, reference)| place(reference, own)).collect();
    all.extend(connection_ref(object));
    all.sort();
    all.dedup();
    all
}

/// The target of a reference. A namespaced resource refers to its own namespace.
fn place(reference: &Value, own: &str) -> Option<(String, String)> {
    let namespace = if own.is_empty() { text(reference, "/namespace") } else { own };
    let name = text(reference, "/name");
    (!namespace.is_empty() && !name.is_empty()).then(|| (namespace.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaced_resource_refers_to_secrets_in_its_namespace() {
        let object = json!({"metadata": {"namespace": "team"}, "spec": {
            "writeConnectionSecretToRef": {"name": "out"},
            "forProvider": {"passwordSecretRef": {"name": "given", "key": "password"}, "roleRef": {"name": "x"}}}});
        let team = |name: &str| ("team".to_owned(), name.to_owned());
        assert_eq!(named(&object), [team("given"), team("out")]);
    }

    #[test]
    fn secret_of_another_owner_is_not_taken() {
        let owned = |uid: &str| json!({"type": CONNECTION, "metadata": {"ownerReferences": [{"uid": uid, "controller": true}]}});
        assert_eq!(not_ours(&owned("me"), "me"), None);
        assert!(
            not_ours(&owned("you"), "me").is_some_and(|why| why.contains("not controlled by UID"))
        );
        assert!(not_ours(&json!({"type": "Opaque", "metadata": {}}), "me").is_some());
        assert_eq!(not_ours(&json!({"type": CONNECTION, "metadata": {}}), "me"), None);
    }
}
