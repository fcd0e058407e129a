//! The portal's configuration. All its flags exist, all its files are mounted, and all its secrets
//! are in existing Secrets.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Case, same};
use crate::yaml;

/// The folder of the mounted volumes.
const FOLDER: &str = "/etc/paved-portal";

/// The fields of the configuration, and their values in the chart.
const FOLLOWS: [(&str, &str); 13] = [
    ("public-url", "/portal/publicUrl"),
    ("trusted-proxy", "/portal/trustedProxies"),
    ("oidc-issuer", "/portal/oidc/issuer"),
    ("oidc-client-id", "/portal/oidc/clientId"),
    ("oidc-scopes", "/portal/oidc/scopes"),
    ("oidc-username-claim", "/portal/oidc/usernameClaim"),
    ("oidc-groups-claim", "/portal/oidc/groupsClaim"),
    ("oidc-username-prefix", "/portal/oidc/usernamePrefix"),
    ("oidc-groups-prefix", "/portal/oidc/groupsPrefix"),
    ("session-ttl", "/portal/sessions/ttl"),
    ("namespace-template", "/portal/namespaceTemplate"),
    ("apis", "/portal/apis"),
    ("log-level", "/logLevel"),
];

pub fn check(case: &Case) -> Result<()> {
    let map = case.objects.one("ConfigMap")?["data"].as_object().context("no data")?;
    let names: Vec<_> = map.keys().collect();
    ensure!(names == ["portal.yaml"], "the ConfigMap has the keys {names:?}");
    let text = map["portal.yaml"].as_str().context("no text")?;
    let config = yaml::documents(text)?.pop().context("the configuration is empty")?;
    for (flag, path) in FOLLOWS {
        let value = case.value(path);
        let is_said = value != "" && *value != json!([]);
        same(flag, &config[flag], if is_said { value } else { &Value::Null })?;
    }
    same("auth", &config["auth"], &json!("oidc"))?;
    same("listen", &config["listen"], &json!(format!("{}:8080", case.text("/listenAddress"))))?;
    known(&config)?;
    let pod = &case.pod()?["spec"];
    let files = mounted(pod)?;
    for (flag, file) in named(&config) {
        let is_tls = case.has_tls()
            && ["tls.crt", "tls.key"].map(|name| format!("{FOLDER}/tls/{name}")).contains(&file);
        ensure!(is_tls || files.contains(&file), "{flag}: {file} is not mounted: {files:?}");
    }
    let keys = case.value("/portal/sessions/keys").as_array().context("no keys")?;
    let keys: Vec<_> = keys
        .iter()
        .map(|key| format!("{FOLDER}/sessions/{}", key.as_str().unwrap_or_default()))
        .collect();
    same("session-key-file", &config["session-key-file"], &json!(keys))?;
    for (flag, path) in [
        ("oidc-client-secret-file", "/portal/oidc/clientSecret/secretName"),
        ("oidc-ca-file", "/portal/oidc/ca/configMapName"),
        ("tls-cert", "/portal/tls/secretName"),
    ] {
        ensure!(
            config[flag].is_null() == case.text(path).is_empty(),
            "{flag} does not follow {path}"
        );
    }
    secrets(case, pod)
}

/// Fails unless every name in the file is a flag of `paved portal`.
fn known(config: &Value) -> Result<()> {
    let command = paved::command();
    let portal = command.find_subcommand("portal").context("paved has no command portal")?;
    let flags: BTreeSet<_> = portal.get_arguments().filter_map(|flag| flag.get_long()).collect();
    let names = config.as_object().context("no names")?.keys();
    let unknown: Vec<_> = names.filter(|name| !flags.contains(name.as_str())).collect();
    ensure!(unknown.is_empty(), "paved portal has no flags called {unknown:?}");
    Ok(())
}

/// The files that the configuration names, by flag.
fn named(config: &Value) -> Vec<(String, String)> {
    let is_file = |text: &str| text.starts_with('/');
    let texts = |value: &Value| match value {
        Value::Array(values) => {
            values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    };
    let flags = config.as_object().into_iter().flatten();
    let files =
        flags.flat_map(|(flag, value)| texts(value).into_iter().map(|text| (flag.clone(), text)));
    files.filter(|(_, text)| is_file(text)).collect()
}

/// The mounted files.
fn mounted(pod: &Value) -> Result<BTreeSet<String>> {
    let volumes = pod["volumes"].as_array().context("no volumes")?;
    let mounts = &pod["containers"][0]["volumeMounts"];
    let expected: Vec<_> = volumes
        .iter()
        .map(|volume| {
            let name = volume["name"].as_str().unwrap_or_default();
            json!({"name": name, "mountPath": format!("{FOLDER}/{name}"), "readOnly": true})
        })
        .collect();
    same("the mounts", mounts, &json!(expected))?;
    let files = volumes.iter().flat_map(|volume| {
        let name = volume["name"].as_str().unwrap_or_default();
        let sources = [&volume["secret"]["items"], &volume["configMap"]["items"]];
        let items = sources.into_iter().filter_map(Value::as_array).flatten();
        items.map(move |item| {
            format!("{FOLDER}/{name}/{}", item["path"].as_str().unwrap_or_default())
        })
    });
    Ok(files.collect())
}

/// Secrets must be referenced by name and mounted as files. Environment variables would be visible
/// in a description of the pod.
fn secrets(case: &Case, pod: &Value) -> Result<()> {
    let container = &pod["containers"][0];
    ensure!(
        container["env"].is_null() && container["envFrom"].is_null(),
        "the container has environment variables"
    );
    same(
        "the arguments",
        &container["args"],
        &json!(["--config", format!("{FOLDER}/config/portal.yaml")]),
    )?;
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    let found: BTreeSet<_> =
        volumes.filter_map(|volume| volume["secret"]["secretName"].as_str()).collect();
    let named = [
        "/portal/sessions/secretName",
        "/portal/oidc/clientSecret/secretName",
        "/portal/tls/secretName",
    ];
    let expected: BTreeSet<_> =
        named.iter().map(|path| case.text(path)).filter(|name| !name.is_empty()).collect();
    ensure!(
        found == expected,
        "the pod mounts the Secrets {found:?}, but the values name {expected:?}"
    );
    Ok(())
}
