//! `paved platform`: writes manifests for the platform team's Git and the rights of providers in
//! clouds, and shows the effect of changed Settings. `paved platform uninstall` removes an
//! installation.

mod check;
mod rights;
#[cfg(feature = "cluster")]
pub(crate) mod uninstall;

use std::fs;
use std::path::Path;

use function_paved_road::apis::APIS;
use function_paved_road::manifests;
use paved_render::subject::pipeline_step::CONFIG;
use serde_json::{Map, Value};

use crate::Console;
use crate::cli::{Platform, group_of};
use crate::documents::yaml;
use crate::failure::Failure;
use crate::files::Inputs;
use crate::prepare::settings;
use crate::validate;

/// Writes the manifests, or shows the effect of new Settings. Rejects invalid Settings with all
/// errors.
pub(crate) fn run(args: &Platform, console: &mut Console<'_>) -> Result<(), Failure> {
    let file = args.settings()?;
    let group = group_of(args.flavour, args.group.as_deref())?;
    let inputs = Inputs::default();
    for settings in std::iter::once(file).chain(args.old.as_deref()) {
        settings::one_settings(settings, &inputs, console)?;
    }
    validate::settings(file, &inputs, console)?;
    if !args.check.is_empty() {
        return check::run(args, &inputs, console);
    }
    let settings = body(settings::one_settings(file, &inputs, console)?);
    if let Some(clouds) = &args.cloud_rights {
        return rights::run(args, clouds, &settings, console);
    }
    if args.argocd {
        let health = manifests::argocd::config_map(args.flavour, &group);
        write!(console.out, "{}", yaml(&health)?)?;
        return Ok(());
    }
    let files = manifests(args, &group, &settings);
    match &args.output {
        None => print(&files, console),
        Some(folder) => write(&files, folder, console),
    }
}

/// A file and its documents.
struct File {
    name: String,
    documents: Vec<Value>,
}

/// An XRD for each API, their Compositions, the policies that protect Crossplane's fields, and the
/// EnvironmentConfig with the Settings.
fn manifests(args: &Platform, group: &str, settings: &Value) -> Vec<File> {
    let flavour = args.flavour;
    let mut files: Vec<File> = APIS
        .iter()
        .map(|api| File {
            name: format!("xrd/{}.yaml", api.info().name),
            documents: vec![manifests::xrd(*api, flavour, group)],
        })
        .collect();
    let compositions = APIS
        .iter()
        .map(|api| manifests::installed_composition(*api, flavour, group, &args.function))
        .collect();
    files.push(File { name: "composition.yaml".to_owned(), documents: compositions });
    let policies = manifests::policy::policies(&[(flavour, group)], &args.crossplane_user);
    files.push(File { name: "policy.yaml".to_owned(), documents: policies });
    let body: Map<String, Value> = settings.as_object().cloned().unwrap_or_default();
    let config = manifests::environment_config(body);
    files.push(File { name: "environmentconfig.yaml".to_owned(), documents: vec![config] });
    files
}

/// The Settings themselves, from a document of either kind.
fn body(mut document: Value) -> Value {
    if document["kind"] == CONFIG { document["data"].take() } else { document }
}

fn print(files: &[File], console: &mut Console<'_>) -> Result<(), Failure> {
    for document in files.iter().flat_map(|file| &file.documents) {
        write!(console.out, "---\n{}", yaml(document)?)?;
    }
    Ok(())
}

fn write(files: &[File], folder: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(&file.name);
        let unwritable =
            |error| Failure::Usage(format!("could not write {}: {error}", path.display()));
        let mut text = "# Written by `paved platform`.\n".to_owned();
        for document in &file.documents {
            text.push_str("---\n");
            text.push_str(&yaml(document)?);
        }
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(unwritable)?;
        fs::write(&path, text).map_err(unwritable)?;
        writeln!(console.out, "{}", path.display())?;
    }
    Ok(())
}
