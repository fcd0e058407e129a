//! `cargo xtask schemas`: slices of the providers' CRDs, cut to the fields of our resources.
//!
//! The CRDs of the providers are large, and we do not copy them. The slices have the fields of our
//! models with all their validation. Tests validate our resources by the slices, and an API server
//! accepts the slices as CRDs. A slice is never laxer than its CRD: it keeps all fields that the
//! provider requires, also fields that we do not model.
//!
//! The CRDs come from the folder of `--crds`, or from `xtask/crds` if the folder lacks the kind. A
//! kind in `xtask/crds` has the CRD of the oldest supported provider.

mod cut;
mod shape;
mod snapshot;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use function_paved_road::models::{KINDS, KindInfo, Scope};
use serde_json::Value;

use self::{
    cut::Gaps,
    shape::Shape,
    snapshot::{Entry, Snapshot},
};
use crate::workspace;

/// The groups and kinds that we compose or document without a model.
const WHOLE: &[(&str, &str)] = &[
    ("apiextensions.crossplane.io", "Usage"),
    ("protection.crossplane.io", "Usage"),
    ("helm.crossplane.io", "ProviderConfig"),
    ("helm.m.crossplane.io", "ProviderConfig"),
    ("kubernetes.crossplane.io", "ProviderConfig"),
    ("kubernetes.m.crossplane.io", "ProviderConfig"),
    ("aws.upbound.io", "ProviderConfig"),
    ("aws.m.upbound.io", "ClusterProviderConfig"),
    ("gcp.upbound.io", "ProviderConfig"),
    ("gcp.m.upbound.io", "ClusterProviderConfig"),
    ("helm.m.crossplane.io", "ClusterProviderConfig"),
    ("kubernetes.m.crossplane.io", "ClusterProviderConfig"),
    ("postgresql.sql.crossplane.io", "ProviderConfig"),
    ("postgresql.sql.m.crossplane.io", "ClusterProviderConfig"),
];

/// Flags of `cargo xtask schemas`.
#[derive(clap::Args)]
pub struct Args {
    /// Folder with one CRD per file, and an INDEX.json with each file's kind and source.
    #[arg(long, value_name = "DIR")]
    crds: PathBuf,
    /// Write no files, and fail if `tests/schemas` is outdated.
    #[arg(long)]
    check: bool,
}

/// Writes or checks `tests/schemas`.
pub fn run(args: &Args) -> Result<()> {
    let files = slices(&Snapshot::read(&args.crds)?)?;
    let folder = workspace::root().join("tests/schemas");
    if args.check {
        return check(&folder, &files);
    }
    fs::create_dir_all(&folder)?;
    for stale in present(&folder)?.difference(&files.keys().cloned().collect()) {
        fs::remove_file(folder.join(stale))?;
    }
    for (name, text) in &files {
        fs::write(folder.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    println!("{} slices in {}", files.len(), folder.display());
    Ok(())
}

fn check(folder: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    let present = present(folder)?;
    let mut drifted: BTreeSet<_> =
        present.iter().filter(|name| !files.contains_key(*name)).collect();
    drifted.extend(
        files
            .iter()
            .filter(|(name, text)| {
                fs::read_to_string(folder.join(name)).ok().as_ref() != Some(text)
            })
            .map(|(name, _)| name),
    );
    ensure!(
        drifted.is_empty(),
        "run `cargo xtask schemas --crds DIR`: these slices drifted: {drifted:?}"
    );
    println!("{} slices match their CRDs", files.len());
    Ok(())
}

/// The names of the slices in the folder.
fn present(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    Ok(names)
}

/// All slices, by file name.
fn slices(snapshot: &Snapshot) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for model in KINDS {
        files.extend(both_flavours(snapshot, model)?);
    }
    for (group, kind) in WHOLE {
        let (folder, entry) = snapshot.find(group, kind)?;
        files.insert(entry.file.clone(), slice(folder, entry, &entry.newest, cut::without_prose)?);
    }
    Ok(files)
}

/// The slices of a model's two CRDs. Each field of the model must exist in one of the CRDs. The
/// namespace of a reference exists in only one of them.
fn both_flavours(snapshot: &Snapshot, model: &KindInfo) -> Result<[(String, String); 2]> {
    let kind = &model.kind;
    let spec = Shape::from_schema((model.for_provider)().as_value());
    let status = Shape::from_schema((model.status)().as_value());
    let one = |group: &str, version: &str| {
        let (folder, entry) = snapshot.find(group, kind.kind)?;
        let mut gaps = Gaps::default();
        let text = slice(folder, entry, version, |whole| {
            cut::require(whole, kind.spec_fields, &mut gaps);
            let initial = kind.spec_fields.contains(&"initProvider");
            cut::managed(whole, &spec, &status, initial, &mut gaps)
        })?;
        ensure!(gaps.wrong.is_empty(), "{}: {}", entry.file, gaps.wrong.join("; "));
        Ok(((entry.file.clone(), text), gaps.missing))
    };
    let (cluster, cluster_lacks) = one(&kind.group(Scope::LegacyCluster), kind.cluster_version)?;
    let (namespaced, namespaced_lacks) =
        one(&kind.group(Scope::Namespaced), kind.namespaced_version)?;
    let missing: Vec<_> =
        cluster_lacks.intersection(&namespaced_lacks).map(String::as_str).collect();
    ensure!(missing.is_empty(), "the CRDs of {} have no {}", kind.kind, missing.join(", no "));
    Ok([cluster, namespaced])
}

/// A CRD with one version and the schema that `cut` returns.
fn slice(
    folder: &Path,
    entry: &Entry,
    version: &str,
    cut: impl FnOnce(&Value) -> Value,
) -> Result<String> {
    let crd = entry.crd(folder)?;
    let versions =
        crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(found) = versions.iter().find(|v| v["name"] == version) else {
        bail!("{} has no version {version}; it has {}", entry.file, entry.all.join(", "));
    };
    let body = serde_json::json!({
        "apiVersion": crd["apiVersion"],
        "kind": crd["kind"],
        "metadata": { "name": crd["metadata"]["name"] },
        "spec": {
            "group": crd["spec"]["group"],
            "names": crd["spec"]["names"],
            "scope": crd["spec"]["scope"],
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": cut(&found["schema"]["openAPIV3Schema"]) },
                "subresources": { "status": {} },
            }],
        },
    });
    Ok(format!("{}{}", entry.header(version), serde_saphyr::to_string(&body)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The project in a slice's second line: `… in crossplane-contrib/provider-sql, cut to …`.
    fn project(slice: &str) -> String {
        let line = slice.lines().nth(1).unwrap();
        let (_, source) = line.split_once(" in ").unwrap();
        let (source, _) = source.split_once(", cut to ").unwrap();
        // A project without an owner has a version: `crossplane v2.3.4`.
        let name = source.rsplit('/').next().unwrap();
        name.split(' ').next().unwrap().to_owned()
    }

    #[test]
    fn notice_names_the_projects_that_slices_are_cut_from() {
        let folder = workspace::root().join("tests/schemas");
        let slices = present(&folder).unwrap();
        let projects: BTreeSet<_> = slices
            .iter()
            .map(|slice| project(&fs::read_to_string(folder.join(slice)).unwrap()))
            .collect();
        let notice = fs::read_to_string(workspace::root().join("NOTICE")).unwrap().to_lowercase();
        let words = notice.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let named = words.filter(|word| *word == "crossplane" || word.starts_with("provider-"));
        assert_eq!(named.map(str::to_owned).collect::<BTreeSet<_>>(), projects);
    }
}
