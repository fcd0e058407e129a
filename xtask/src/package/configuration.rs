//! The Configurations: one for each API and flavour, with its XRD, its Composition and its
//! dependencies. For a company's own group, roles and policies are added.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use function_paved_road::apis::{APIS, AnyApi, Flavour};
use function_paved_road::manifests;
use serde_json::{Value, json};

use super::{Args, activation, names, rbac, xpkg};
use crate::{composed, tools, yaml};

/// Builds the packages that the flags select, and the roles and policies of a company's own group.
/// Returns their files.
pub fn packages(args: &Args, output: &Path) -> Result<Vec<PathBuf>> {
    let crossplane = tools::path(&tools::CLI)?;
    let mut files = Vec::new();
    for api in APIS {
        for flavour in args.flavours() {
            let file = output.join(format!("{}.xpkg", names::configuration(*api, flavour)));
            Contents::new(args, *api, flavour)?.write(&crossplane, &file)?;
            files.push(file);
        }
    }
    if let (Some(flavour), Some(group)) = (args.flavour, &args.group) {
        let people = output.join("people.yaml");
        yaml::write(&people, &rbac::people(args.place.root(), flavour, group)?)?;
        files.push(people);
        let policy = output.join("policy.yaml");
        yaml::write(
            &policy,
            &manifests::policy::policies(&[(flavour, group)], &args.crossplane_user),
        )?;
        files.push(policy);
    }
    Ok(files)
}

/// The contents of a Configuration.
pub struct Contents {
    /// The `crossplane.yaml`.
    pub meta: Value,
    /// The CompositeResourceDefinition.
    pub xrd: Value,
    /// The Composition.
    pub composition: Value,
    /// The ManagedResourceActivationPolicy. `None` for the claims API, because Crossplane 1.20
    /// rejects a Configuration with a policy. `None` also if no managed resource is composed.
    pub activation: Option<Value>,
    /// Examples that users apply.
    pub examples: Vec<Value>,
}

impl Contents {
    /// The contents for an API, as claims API or namespaced API.
    pub fn new(args: &Args, api: &dyn AnyApi, flavour: Flavour) -> Result<Self> {
        let group = args.group.as_deref().unwrap_or_else(|| flavour.default_group());
        Ok(Self {
            meta: meta(args, api, flavour)?,
            xrd: manifests::xrd(api, flavour, group),
            composition: composition(args, api, flavour, group),
            activation: activation(args.place.root(), api, flavour, group)?,
            examples: examples(args.place.root(), api, flavour, group)?,
        })
    }

    /// Packs the contents into a file.
    pub fn write(&self, crossplane: &Path, file: &Path) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let (root, examples) = (folder.path().join("package"), folder.path().join("examples"));
        for folder in [&root, &examples] {
            fs::create_dir(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        yaml::write(&root.join("crossplane.yaml"), std::slice::from_ref(&self.meta))?;
        yaml::write(&root.join("xrd.yaml"), std::slice::from_ref(&self.xrd))?;
        yaml::write(&root.join("composition.yaml"), std::slice::from_ref(&self.composition))?;
        if let Some(activation) = &self.activation {
            yaml::write(&root.join("activation.yaml"), std::slice::from_ref(activation))?;
        }
        yaml::write(&examples.join("example.yaml"), &self.examples)?;
        xpkg::Build { crossplane, root: &root, examples: &examples, image: None }.write(file)
    }
}

/// The policy in a package.
fn activation(
    root: &Path,
    api: &dyn AnyApi,
    flavour: Flavour,
    group: &str,
) -> Result<Option<Value>> {
    if flavour == Flavour::Claims {
        return Ok(None);
    }
    let policy = activation::policy(root, api, flavour, group)?;
    let is_empty = policy["spec"]["activate"].as_array().is_none_or(Vec::is_empty);
    Ok((!is_empty).then_some(policy))
}

/// The package's `crossplane.yaml`.
fn meta(args: &Args, api: &dyn AnyApi, flavour: Flavour) -> Result<Value> {
    let root = args.place.root();
    let mut dependencies = vec![function(args)];
    for package in composed::among(composed::for_root(root)?, api, flavour)?.needed() {
        dependencies.push(dependency("Provider", &package.reference(), &package.versions()));
    }
    let info = api.info();
    let mut annotations = about(root)?;
    annotations["meta.crossplane.io/description"] = json!(info.summary);
    annotations["meta.crossplane.io/readme"] = json!(readme(api, flavour));
    Ok(json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Configuration",
        "metadata": {"name": names::configuration(api, flavour), "annotations": annotations},
        "spec": {
            "crossplane": {"version": oldest_crossplane(flavour)},
            "dependsOn": dependencies,
        },
    }))
}

/// The Function that a Configuration depends on.
pub fn function(args: &Args) -> Value {
    dependency("Function", &args.registry.function(), &since(&args.release))
}

/// The release and all later ones, including pre-releases. In Crossplane, a constraint without a
/// pre-release allows no pre-release.
fn since(release: &str) -> String {
    let oldest = if release.contains('-') { "" } else { "-0" };
    format!(">={release}{oldest}")
}

fn dependency(kind: &str, package: &str, version: &str) -> Value {
    json!({"apiVersion": "pkg.crossplane.io/v1", "kind": kind, "package": package, "version": version})
}

/// The maintainer, source and license in the Function's own `crossplane.yaml`.
fn about(root: &Path) -> Result<Value> {
    let function = yaml::read(&root.join("package/function/crossplane.yaml"))?;
    let all = function.first().context("package/function/crossplane.yaml is empty")?;
    let kept = ["maintainer", "source", "license"].map(|name| {
        let key = format!("meta.crossplane.io/{name}");
        let value = all["metadata"]["annotations"][&key].clone();
        (key, value)
    });
    Ok(kept.into_iter().collect::<serde_json::Map<_, _>>().into())
}

fn oldest_crossplane(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Claims => ">=v1.20.0-0",
        Flavour::Namespaced => ">=v2.0.0-0",
    }
}

fn readme(api: &dyn AnyApi, flavour: Flavour) -> String {
    let info = api.info();
    let people = match flavour {
        Flavour::Claims => {
            format!("People apply a claim, `{}`, in their namespace.", info.claim.kind)
        }
        Flavour::Namespaced => {
            format!("People apply the composite, `{}`, in their namespace.", info.namespaced.kind)
        }
    };
    format!(
        "{} {people} The platform team's settings are the data of an EnvironmentConfig called `{}`.\n",
        info.summary,
        manifests::ENVIRONMENT_CONFIG
    )
}

/// The Composition. It refers to the Function by the name that Crossplane gives to a dependency.
/// The label with the release distinguishes its revisions, and can select one.
fn composition(args: &Args, api: &dyn AnyApi, flavour: Flavour, group: &str) -> Value {
    let function = args.registry.installed_function();
    let mut composition = manifests::installed_composition(api, flavour, group, &function);
    composition["metadata"]["labels"]["app.kubernetes.io/version"] = json!(args.release);
    composition
}

/// The examples that users apply, in the group of the package.
fn examples(root: &Path, api: &dyn AnyApi, flavour: Flavour, group: &str) -> Result<Vec<Value>> {
    let file = match flavour {
        Flavour::Claims => "claim.yaml",
        Flavour::Namespaced => "namespaced/xr.yaml",
    };
    let mut documents = yaml::read(&root.join("examples").join(api.info().name).join(file))?;
    for document in &mut documents {
        document["apiVersion"] = json!(manifests::api_version(group));
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The function of v0.1.0 rejects unknown Settings, and may run with later Compositions.
    #[test]
    fn composition_has_only_settings_of_the_first_release() {
        const KNOWN: [&str; 4] = ["apiVersion", "kind", "schemaRevision", "settingsFrom"];
        for (api, flavour) in APIS.iter().flat_map(|api| Flavour::ALL.map(|one| (*api, one))) {
            let contents = Contents::new(&Args::default(), api, flavour).unwrap();
            let input = &contents.composition["spec"]["pipeline"][0]["input"];
            let keys = input.as_object().unwrap().keys().collect::<Vec<_>>();
            assert_eq!(keys, KNOWN, "{}", api.info().name);
            assert_eq!(input["settingsFrom"].as_object().unwrap().len(), 1);
        }
    }

    /// A constraint without a pre-release, for example `>=v0.1.0`, allows releases only.
    #[test]
    fn a_later_pre_release_of_the_function_will_do() {
        for (release, versions) in [("v0.1.0", ">=v0.1.0-0"), ("v0.2.0-rc.1", ">=v0.2.0-rc.1")] {
            let args = Args { release: release.to_owned(), ..Args::default() };
            let contents = Contents::new(&args, APIS[0], Flavour::Claims).unwrap();
            let function = &contents.meta["spec"]["dependsOn"][0];
            assert_eq!(
                (&function["kind"], &function["version"]),
                (&json!("Function"), &json!(versions))
            );
        }
    }
}
