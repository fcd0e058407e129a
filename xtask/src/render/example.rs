//! The examples: `examples/<api>/` for claims, `examples/<api>/namespaced/` for namespaced XRs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{workspace, yaml};

/// An example in one state.
#[derive(Clone)]
pub struct Example {
    /// The folder below `examples/`, and the state: `gpu-workspace/namespaced ready`.
    pub name: String,
    /// The XR.
    pub xr: PathBuf,
    /// The claim of the XR, in the claims API.
    pub claim: Option<PathBuf>,
    /// The Composition.
    pub composition: PathBuf,
    /// The Functions of the Composition, for a process on this machine.
    pub functions: PathBuf,
    /// The XRD of the XR.
    pub xrd: PathBuf,
    /// The observed state: composed resources, and Secrets with their connection details. `None`
    /// before any resource exists.
    pub observed: Option<PathBuf>,
    /// The EnvironmentConfig that the Composition's `settingsFrom` names.
    pub environment: Option<PathBuf>,
}

/// Whether a resource is composed, by Crossplane's annotation.
pub fn is_composed(resource: &Value) -> bool {
    resource.pointer("/metadata/annotations/crossplane.io~1composition-resource-name").is_some()
}

impl Example {
    /// Every example, in the claims API and in the namespaced API, in every state.
    pub fn all() -> Result<Vec<Self>> {
        let root = workspace::root();
        let mut all = Vec::new();
        for api in sorted(&root.join("examples"))?.into_iter().filter(|path| path.is_dir()) {
            let name = file_stem(&api);
            all.extend(Self::states(&name, &api, &root.join("xrd"))?);
            let namespaced = root.join("namespaced/xrd");
            all.extend(Self::states(
                &format!("{name}/namespaced"),
                &api.join("namespaced"),
                &namespaced,
            )?);
        }
        Ok(all)
    }

    fn states(name: &str, folder: &Path, xrds: &Path) -> Result<Vec<Self>> {
        let claim = folder.join("claim.yaml");
        let xr = folder.join("xr.yaml");
        let nothing = Self {
            name: format!("{name} nothing"),
            xrd: xrd_of(&xr, xrds)?,
            xr,
            claim: claim.is_file().then_some(claim),
            composition: folder.join("composition.yaml"),
            functions: folder.join("functions-dev.yaml"),
            observed: None,
            environment: None,
        };
        let observed = sorted(&folder.join("observed"))?.into_iter().map(|file| Self {
            name: format!("{name} {}", file_stem(&file)),
            observed: Some(file),
            ..nothing.clone()
        });
        Ok([nothing.clone()].into_iter().chain(observed).collect())
    }

    /// The same, with the Settings of the Composition in an EnvironmentConfig, which the input
    /// names.
    pub fn with_settings_elsewhere(&self, scratch: &Path) -> Result<Self> {
        const NAME: &str = "paved-road";
        let mut documents = yaml::read(&self.composition)?;
        let composition = documents.first_mut().context("the composition file is empty")?;
        let Some(Value::Object(input)) = composition.pointer_mut("/spec/pipeline/0/input") else {
            bail!("{}: its first step has no input", self.composition.display());
        };
        let mut data = std::mem::take(input);
        for kept in ["apiVersion", "kind", "schemaRevision"] {
            input.extend(data.remove_entry(kept));
        }
        input.insert("settingsFrom".to_owned(), json!({ "name": NAME }));
        let config = json!({
            "apiVersion": "apiextensions.crossplane.io/v1beta1",
            "kind": "EnvironmentConfig",
            "metadata": { "name": NAME },
            "data": data,
        });
        let (composition, environment) =
            (scratch.join("composition.yaml"), scratch.join("environment.yaml"));
        yaml::write(&composition, &documents)?;
        yaml::write(&environment, &[config])?;
        Ok(Self { composition, environment: Some(environment), ..self.clone() })
    }
}

/// The XRD in the folder that defines the XR's kind.
fn xrd_of(xr: &Path, xrds: &Path) -> Result<PathBuf> {
    let xr = yaml::read(xr)?.into_iter().next().unwrap_or_default();
    for file in sorted(xrds)? {
        let defines = |xrd: &Value| {
            let version = format!("{}/", xrd["spec"]["group"].as_str().unwrap_or_default());
            let same_group =
                xr["apiVersion"].as_str().is_some_and(|given| given.starts_with(&version));
            same_group && xrd["spec"]["names"]["kind"] == xr["kind"]
        };
        if yaml::read(&file)?.iter().any(defines) {
            return Ok(file);
        }
    }
    bail!("{} has no XRD of {} {}", xrds.display(), xr["apiVersion"], xr["kind"])
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn file_stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
