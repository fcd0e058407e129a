//! The chart of the platform as a Helm package, with the release's version and registry.
//!
//! The templates in `deploy/chart` have no XRDs, Compositions, policies and rights. They read
//! `objects`, which the packaging adds.

mod objects;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{Args, Registry, image};
use crate::workspace;

/// Files that are not packed. The values in `ci` are only for checks.
const NOT_PACKED: [&str; 2] = ["ci", ".helmignore"];

/// The file with the schema of the values.
const SCHEMA: &str = "values.schema.json";

/// The path of the chart in the sources.
const FOLDER: &str = "deploy/chart";

/// The name of the chart.
pub const NAME: &str = "paved-road";

/// The folder of the chart.
pub fn folder() -> PathBuf {
    workspace::root().join(FOLDER)
}

/// Packs the chart, and returns its file.
pub fn write(args: &Args, output: &Path) -> Result<PathBuf> {
    let version = version(&args.release);
    let mut files = BTreeMap::new();
    read(&args.place.root().join(FOLDER), NAME, &mut files)?;
    for (path, value) in objects::files(args)? {
        files.insert(format!("{NAME}/{path}"), format!("{value}\n").into_bytes());
    }
    let schema = format!("{NAME}/{SCHEMA}");
    let strict = objects::with_settings(files.get(&schema).context("the chart has no schema")?)?;
    files.insert(schema, strict);
    let here = Registry::default().to_string();
    for (path, field, from, to) in [
        ("Chart.yaml", "version", env!("CARGO_PKG_VERSION"), version),
        ("Chart.yaml", "appVersion", concat!("v", env!("CARGO_PKG_VERSION")), &args.release),
        ("values.yaml", "registry", &here, &args.registry.to_string()),
    ] {
        replace(&mut files, path, &format!("\n{field}: {from}\n"), &format!("\n{field}: {to}\n"))?;
    }
    let files: Vec<_> = files.iter().map(|(path, content)| (&**path, 0o644, &**content)).collect();
    let file = output.join(format!("{NAME}-{version}.tgz"));
    let packed = image::gzip(&image::tar(&files)?, image::Effort::Best)?;
    fs::write(&file, packed).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// The version of the chart, without a v, as Helm requires.
pub fn version(release: &str) -> &str {
    release.trim_start_matches('v')
}

/// Reads the files of a folder, by their paths in the package.
fn read(folder: &Path, name: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let packed = format!("{name}/{file}");
        if path.is_dir() && !NOT_PACKED.contains(&&*file) {
            read(&path, &packed, files)?;
        } else if path.is_file() && !NOT_PACKED.contains(&&*file) {
            files.insert(
                packed,
                fs::read(&path).with_context(|| format!("reading {}", path.display()))?,
            );
        }
    }
    Ok(())
}

/// Replaces a line, and keeps the comments around it.
fn replace(files: &mut BTreeMap<String, Vec<u8>>, path: &str, from: &str, to: &str) -> Result<()> {
    let content = files.get_mut(&format!("{NAME}/{path}"));
    let content = content.with_context(|| format!("the chart has no {path}"))?;
    let text = str::from_utf8(content).with_context(|| format!("reading {path}"))?;
    ensure!(
        text.matches(from).count() == 1,
        "{path} of the chart should have one line {:?}",
        from.trim()
    );
    *content = text.replace(from, to).into_bytes();
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use function_paved_road::apis::APIS;
    use serde_json::{Value, json};

    use super::*;
    use crate::yaml;

    /// The name and the files of a packed chart.
    fn packed(args: &Args) -> (String, BTreeMap<String, String>) {
        let folder = tempfile::tempdir().unwrap();
        let file = write(args, folder.path()).unwrap();
        let mut archive =
            tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(&file).unwrap()));
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        });
        (file.file_name().unwrap().to_string_lossy().into_owned(), files.collect())
    }

    #[test]
    fn chart_has_the_version_and_the_registry_of_its_release() {
        let registry = "ghcr.io/acme".parse().unwrap();
        let (name, files) =
            packed(&Args { release: "v1.2.3-rc.1".to_owned(), registry, ..Args::default() });
        assert_eq!(name, "paved-road-1.2.3-rc.1.tgz");
        let chart = &yaml::documents(&files["paved-road/Chart.yaml"]).unwrap()[0];
        assert_eq!(
            (&chart["version"], &chart["appVersion"]),
            (&json!("1.2.3-rc.1"), &json!("v1.2.3-rc.1"))
        );
        let values = &yaml::documents(&files["paved-road/values.yaml"]).unwrap()[0];
        assert_eq!(values["registry"], "ghcr.io/acme");
        assert!(files.contains_key("paved-road/files/common.json"));
        assert!(files.keys().all(|path| !path.contains("/ci/")), "{:?}", files.keys());
    }

    #[test]
    fn same_sources_give_the_same_chart() {
        let made = || {
            let folder = tempfile::tempdir().unwrap();
            fs::read(write(&Args::default(), folder.path()).unwrap()).unwrap()
        };
        assert_eq!(made(), made());
    }

    /// The values and the schema have the same fields. The schema allows no other field.
    #[test]
    fn schema_knows_every_value_and_no_other() {
        let schema = fs::read_to_string(folder().join(SCHEMA)).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let values = yaml::read(&folder().join("values.yaml")).unwrap().remove(0);
        let mut known = schema["properties"].as_object().unwrap().clone();
        known.remove("global");
        compare("", &values, &json!({"properties": known, "additionalProperties": false}));
        assert_eq!(schema["required"], json!(["group"]));
        assert_eq!(values["group"], "", "no installation has a group by accident");
    }

    fn compare(path: &str, values: &Value, schema: &Value) {
        let Some(known) = schema["properties"].as_object() else { return };
        assert_eq!(schema["additionalProperties"], false, "{path}");
        let values = values.as_object().unwrap();
        let names = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(values), names(known), "{path}");
        for (name, value) in values {
            compare(&format!("{path}.{name}"), value, &known[name]);
        }
    }

    #[test]
    fn kinds_of_values_and_schema_are_the_apis() {
        let schema = fs::read_to_string(folder().join(SCHEMA)).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let values = yaml::read(&folder().join("values.yaml")).unwrap().remove(0);
        let apis = json!(APIS.iter().map(|api| api.info().name).collect::<Vec<_>>());
        assert_eq!(values["kinds"], apis);
        assert_eq!(schema["properties"]["kinds"]["items"]["enum"], apis);
    }

    #[test]
    fn values_contain_no_secret() {
        let values = yaml::read(&folder().join("values.yaml")).unwrap().remove(0);
        let names: Vec<_> = ["/portal/oidc/clientSecret", "/portal/sessions", "/portal/tls"]
            .iter()
            .flat_map(|path| values.pointer(path).unwrap().as_object().unwrap().keys().cloned())
            .collect();
        assert_eq!(names, ["key", "secretName", "keys", "secretName", "ttl", "secretName"]);
    }
}
