//! Rules with which scenarios change the clouds' behaviour. They are data in the cluster, and apply
//! as soon as they are written.

use std::collections::BTreeMap;

use anyhow::Context as _;
use crossplane::api_version::group_of;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{MANAGER, NAMESPACE};

/// The ConfigMap of [`NAMESPACE`] with the rules. Each entry of its data is a rule in YAML under
/// its own name, so that several writers do not conflict.
pub const CONFIG_MAP: &str = "behaviour";

/// A selector of resources, and the cloud's behaviour for them. All given fields of the selector
/// must match.
///
/// ```yaml
/// kind: Instance
/// labels: {crossplane.io/claim-name: demo}
/// create: "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows"
/// ```
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rule {
    /// The kind's name.
    pub kind: Option<String>,
    /// The API group, for example `ec2.aws.upbound.io`.
    pub group: Option<String>,
    /// The object's namespace.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: Option<String>,
    /// The object's labels, for example `crossplane.io/composite`.
    pub labels: BTreeMap<String, String>,
    /// The cloud refuses to create it, with this message.
    pub create: Option<String>,
    /// The cloud refuses to change it, with this message.
    pub update: Option<String>,
    /// The cloud refuses to delete it, with this message.
    pub delete: Option<String>,
    /// The cloud refuses to start a machine, in these words. The rule is about the Instance, if a
    /// change of it needs a restart, and about the InstanceState that starts it.
    pub start: Option<String>,
    /// It exists but is unavailable, for this reason.
    pub unavailable: Option<String>,
    /// The state that its cloud reports in `status.atProvider`, for example CREATE_FAILED, although
    /// its provider reports it as ready.
    pub reports: Option<String>,
    /// How many seconds its creation takes. While the rule exists, its deletion cannot begin
    /// earlier.
    pub seconds: Option<f64>,
}

/// All rules, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults(BTreeMap<String, Rule>);

impl Faults {
    /// The rules in the ConfigMap's data. An unreadable rule is reported and ignored.
    fn read(data: &BTreeMap<String, String>) -> Self {
        let parsed =
            data.iter().filter_map(|(name, source)| match serde_saphyr::from_str(source) {
                Ok(rule) => Some((name.clone(), rule)),
                Err(error) => {
                    eprintln!("fake-providers: rule {name:?} of ConfigMap {CONFIG_MAP:?}: {error}");
                    None
                }
            });
        Self(parsed.collect())
    }

    /// The rule for an object. If several rules set a field, the first rule by name wins.
    pub fn for_object(&self, object: &Value) -> Rule {
        self.0.values().filter(|rule| rule.is_about(object)).fold(Rule::default(), |all, rule| {
            Rule {
                create: all.create.or_else(|| rule.create.clone()),
                update: all.update.or_else(|| rule.update.clone()),
                delete: all.delete.or_else(|| rule.delete.clone()),
                start: all.start.or_else(|| rule.start.clone()),
                unavailable: all.unavailable.or_else(|| rule.unavailable.clone()),
                reports: all.reports.or_else(|| rule.reports.clone()),
                seconds: all.seconds.or(rule.seconds),
                ..Rule::default()
            }
        })
    }
}

impl Rule {
    fn is_about(&self, object: &Value) -> bool {
        let group = Some(group_of(object));
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let labels = &object["metadata"]["labels"];
        is(&self.kind, object["kind"].as_str())
            && is(&self.group, group)
            && is(&self.namespace, object["metadata"]["namespace"].as_str())
            && is(&self.name, object["metadata"]["name"].as_str())
            && self.labels.iter().all(|(key, value)| labels[key] == **value)
    }
}

/// Follows the ConfigMap for as long as the future is polled, and sends each change of the rules.
pub async fn follow(client: Client, rules: watch::Sender<Faults>) {
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let only = watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}"));
    let mut events = std::pin::pin!(watcher(api, only).default_backoff());
    while let Some(event) = events.next().await {
        let found = match event {
            Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) => {
                map.data.unwrap_or_default()
            }
            Ok(watcher::Event::Delete(_)) => BTreeMap::new(),
            // A broken watch starts again automatically.
            Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => continue,
        };
        let found = Faults::read(&found);
        rules.send_if_modified(|now| std::mem::replace(now, found.clone()) != found);
    }
}

/// Writes a rule under a name, or removes it. The field manager has the same name, so that several
/// writers do not conflict.
pub async fn set(client: &Client, name: &str, rule: Option<&Rule>) -> anyhow::Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let source =
        rule.map(serde_saphyr::to_string).transpose().context("encoding a rule as YAML")?;
    let data: BTreeMap<_, _> = source.into_iter().map(|source| (name, source)).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}, "data": data});
    let writer = PatchParams::apply(&format!("{MANAGER}-{name}")).force();
    api.patch(CONFIG_MAP, &writer, &Patch::Apply(&map))
        .await
        .with_context(|| format!("cannot set the rule {name}"))?;
    Ok(())
}

/// Removes every rule with this name prefix.
pub async fn clear(client: &Client, beginning: &str) -> anyhow::Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let rules = api.get_opt(CONFIG_MAP).await?.and_then(|map| map.data).unwrap_or_default();
    for name in rules.keys().filter(|name| name.starts_with(beginning)) {
        set(client, name, None).await?;
    }
    Ok(())
}

/// A signal for every change of the rules.
pub fn changes(rules: watch::Receiver<Faults>) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(
        rules,
        |mut rules| async move { rules.changed().await.ok().map(|()| ((), rules)) },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rules: &[(&str, &str)]) -> Faults {
        Faults::read(
            &rules.iter().map(|(name, rule)| ((*name).to_owned(), (*rule).to_owned())).collect(),
        )
    }

    fn instance(composite: &str) -> Value {
        json!({"apiVersion": "ec2.aws.upbound.io/v1beta2", "kind": "Instance",
            "metadata": {"name": "i", "labels": {"crossplane.io/composite": composite}}})
    }

    #[test]
    fn rule_applies_if_all_its_selectors_match() {
        let rules = faults(&[(
            "quota",
            "{kind: Instance, labels: {crossplane.io/composite: demo}, create: VcpuLimitExceeded}",
        )]);
        assert_eq!(
            rules.for_object(&instance("demo")).create.as_deref(),
            Some("VcpuLimitExceeded")
        );
        assert_eq!(rules.for_object(&instance("other")), Rule::default());
    }

    #[test]
    fn several_rules_add_up_and_a_broken_rule_is_ignored() {
        let rules = faults(&[
            ("a", "{kind: Instance, seconds: 2.5}"),
            ("b", "{group: ec2.aws.upbound.io, delete: no, seconds: 9}"),
            ("c", "{kind: Instance, creat: misspelt}"),
        ]);
        let rule = rules.for_object(&instance("demo"));
        assert_eq!(
            (rule.seconds, rule.delete.as_deref(), rule.create),
            (Some(2.5), Some("no"), None)
        );
    }
}
