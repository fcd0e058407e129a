//! `paved delete --namespace NAME`: deletes the environments of a namespace, waits until the
//! namespace has no managed resources, and then deletes the namespace.
//!
//! The deletion of a namespace with managed resources never ends, because it first deletes the
//! usages of provider configs: see `function_paved_road::manifests::namespaces`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use function_paved_road::manifests::namespaces::REFUSAL;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Preconditions, TypeMeta};
use kube::core::DynamicObject;
use paved_client::cluster::{Api, Cluster, Found, Kinds, Served, is_denied};
use paved_client::delete::{ManagedKinds, ManagedObject, ManagedObjects};
use paved_client::environment::{Environment, spell};
use tokio::time::sleep;

use super::{POLL_INTERVAL, delete_all, find_parts, plan, until_gone};
use crate::Console;
use crate::ask::agrees;
use crate::cli::Delete;
use crate::failure::Failure;
use crate::signals;
use crate::style::{BOLD, one_line};

/// The page about this command.
const PAGE: &str = "docs/how-to/offboard-a-team.md";

/// How long the admission policy may refuse the namespace after its last environment is gone.
const POLICY_DELAY: Duration = Duration::from_secs(30);

/// How often the namespace is read during its deletion.
const NAMESPACE_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of names in a message.
const MAX_NAMES: usize = 10;

/// The label of a program with the product that it belongs to, and the products without which no
/// environment can be deleted.
const PART_OF: &str = "app.kubernetes.io/part-of";
const PLATFORM: [(&str, &str); 2] = [("crossplane", "Crossplane"), ("paved-road", "Paved Road")];

/// The namespace to delete.
struct Target<'c> {
    cluster: &'c Cluster,
    kinds: Kinds,
    managed: ManagedKinds,
    served: Served,
    api: Api<Namespace>,
    namespace: Namespace,
    /// The time limit, and its begin.
    longest: Duration,
    begin: Instant,
}

/// Lists the contents of the namespace, asks, and deletes the contents and the namespace.
pub(super) async fn run(
    args: &Delete,
    longest: Duration,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if args.planning.plan || args.planning.confirm.is_some() {
        let message = "--plan and --confirm: found without names of environments; allowed: with \
                       names. Nothing was deleted";
        return Err(Failure::Usage(message.to_owned()));
    }
    let cluster = args.access.connect().await?;
    let name = &cluster.namespace;
    let is_agreed = check_flags(args, name)?;
    check_owner(&cluster, name).await?;
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let found = api.get_opt(name).await;
    let found =
        found.map_err(|error| cluster.explain(&error, &format!("read namespace {name}")))?;
    let Some(namespace) = found else {
        let message = format!("namespace {name} does not exist at {}", cluster.server);
        if args.ignore_not_found {
            writeln!(console.out, "{message}")?;
            return Ok(());
        }
        return Err(Failure::Absent(format!("{message}. Nothing was deleted")));
    };
    let target = Target {
        kinds: Kinds::ask(&cluster).await?,
        managed: ManagedKinds::discover(&cluster).await?,
        served: Served::default(),
        api,
        namespace,
        longest,
        begin: Instant::now(),
        cluster: &cluster,
    };
    let environments = target.environments().await?;
    let managed = target.managed.list(&cluster).await?;
    target.check_rights(&managed, console).await?;
    target.show(&environments, &managed, console).await?;
    if !(is_agreed || target.agreed(console)?) {
        return Err(Failure::Usage("cancelled. Nothing was deleted".to_owned()));
    }
    let mut parts = Vec::new();
    for one in &environments {
        parts.push(find_parts(&cluster, &target.served, one).await?);
    }
    let stays = |one: &&Found| one.object.metadata.deletion_timestamp.is_none();
    let asked: Vec<Found> = environments.iter().filter(stays).cloned().collect();
    let progress = format!(
        "deletions that have begun continue in the cluster. Namespace {name} still exists. To \
         continue, run: paved delete --namespace {name}"
    );
    match delete_all(&cluster, &asked, false, console).await {
        Err(Failure::Interrupted(message)) => {
            return Err(Failure::Interrupted(format!("{message}; {progress}")));
        }
        other => other?,
    }
    let finished = async {
        if !environments.is_empty() {
            until_gone(&cluster, environments, parts, target.left(), console).await?;
        }
        target.until_unmanaged(console).await?;
        target.delete(console).await
    };
    signals::unless_asked(Box::pin(finished), &progress).await
}

/// Whether the flags agree to the deletion of the namespace. Rejects flags that other deletions
/// have, because an unset variable in a script must not delete a namespace.
fn check_flags(args: &Delete, name: &str) -> Result<bool, Failure> {
    if !args.names_namespace {
        return Err(Failure::Usage(format!(
            "no environment is named. Nothing was deleted. To delete namespace {name} with all its \
             environments, write the flag out: paved delete --namespace {name}"
        )));
    }
    match &args.yes {
        None => Ok(false),
        Some(Some(agreed)) if agreed == name => Ok(true),
        Some(found) => Err(Failure::Usage(format!(
            "--yes: found {}; no environment is named, so this would delete namespace {name}. \
             Nothing was deleted. To delete the namespace without a question, use --yes={name}",
            found.as_deref().unwrap_or("no namespace"),
        ))),
    }
}

/// Rejects namespaces of Kubernetes, and namespaces in which Crossplane or Paved Road run: without
/// them, no environment of the cluster can be deleted any more.
async fn check_owner(cluster: &Cluster, name: &str) -> Result<(), Failure> {
    let belongs_to = |owner: &str| {
        let message = format!("namespace {name} belongs to {owner}. Nothing was deleted");
        Err(Failure::Usage(message))
    };
    if name == "default" || name.starts_with("kube-") {
        return belongs_to("Kubernetes");
    }
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), name);
    let found = match api.list_metadata(&ListParams::default()).await {
        // A user without this right has no namespace with these programs.
        Err(error) if is_denied(&error) => return Ok(()),
        found => found.map_err(|error| cluster.explain(&error, "list deployments"))?,
    };
    let parts = found
        .items
        .iter()
        .flat_map(|one| &one.metadata.labels)
        .filter_map(|labels| labels.get(PART_OF));
    for part in parts {
        for (label, owner) in PLATFORM {
            if part == label {
                return belongs_to(owner);
            }
        }
    }
    Ok(())
}

impl Target<'_> {
    fn name(&self) -> &str {
        &self.cluster.namespace
    }

    /// The rest of the time limit.
    fn left(&self) -> Duration {
        self.longest.saturating_sub(self.begin.elapsed())
    }

    fn is_terminating(&self) -> bool {
        self.namespace.metadata.deletion_timestamp.is_some()
    }

    /// All environments of the namespace.
    async fn environments(&self) -> Result<Vec<Found>, Failure> {
        let mut all = Vec::new();
        for kind in self.kinds.all() {
            let api = kind.api(&self.cluster.client, Some(self.name()));
            let list = api.list(&ListParams::default()).await.map_err(|error| {
                self.cluster.explain(&error, &format!("list {}", kind.resource.plural))
            })?;
            let types = TypeMeta {
                api_version: kind.resource.api_version.clone(),
                kind: kind.name().to_owned(),
            };
            all.extend(list.items.into_iter().map(|object| Found {
                kind: kind.clone(),
                object: DynamicObject { types: Some(types.clone()), ..object },
                listed: None,
            }));
        }
        Ok(all)
    }

    /// Fails if the caller may not do all that is necessary, before any deletion: to list managed
    /// resources of every kind, and to delete the namespace.
    async fn check_rights(
        &self,
        managed: &ManagedObjects,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let name = self.name();
        if !managed.hidden.is_empty() {
            let hidden: Vec<String> = managed.hidden.iter().cloned().collect();
            return Err(Failure::NoAccess {
                message: format!(
                    "you may not list {} in namespace {name}. Nothing was deleted, because the \
                     deletion of a namespace with managed resources never ends",
                    few(&hidden)
                ),
                check: "that your account may list all managed resources".to_owned(),
            });
        }
        let params = DeleteParams { dry_run: true, ..self.params() };
        match self.api.delete(name, &params).await {
            Ok(()) => Ok(()),
            Err(kube::Error::Api(status)) if status.message.contains(REFUSAL) => Ok(()),
            Err(error) => {
                writeln!(console.err, "note: nothing was deleted")?;
                Err(self.cluster.explain(&error, &format!("delete namespace {name}")).into())
            }
        }
    }

    /// Deletes this namespace only, not a newer one with the same name.
    fn params(&self) -> DeleteParams {
        let uid = self.namespace.metadata.uid.clone();
        DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        }
    }

    /// Shows the objects that are deleted.
    async fn show(
        &self,
        environments: &[Found],
        managed: &ManagedObjects,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        writeln!(console.err, "{BOLD}Namespace {}{BOLD:#}", self.name())?;
        for one in environments {
            let seen = Environment::from_object(&one.object);
            writeln!(console.err, "{BOLD}{}{BOLD:#}", seen.title())?;
            for line in plan::question(&seen) {
                writeln!(console.err, "  {line}")?;
            }
        }
        let mut others = BTreeSet::new();
        for one in managed.all.iter().filter(|one| !one.is_of_environment(&self.kinds)) {
            let root = one.root(self.cluster, &self.served).await?;
            if !root.is_environment(&self.kinds) {
                others.insert(root.title());
            }
        }
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().collect();
            writeln!(console.err, "Deletes, without an environment: {}", others.join(", "))?;
        }
        writeln!(console.err, "Deletes all other objects of the namespace, for example Secrets.")?;
        Ok(())
    }

    fn agreed(&self, console: &mut Console<'_>) -> Result<bool, Failure> {
        let name = self.name();
        let unanswered = format!(
            "no terminal to ask for confirmation. Use --yes={name} to delete namespace {name} \
             without a question. Nothing was deleted"
        );
        agrees(&format!("Delete namespace {name}?"), &unanswered, console)
    }

    /// Deletes the other managed resources, and waits until the namespace has none.
    async fn until_unmanaged(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let mut printed = String::new();
        let mut asked = BTreeSet::new();
        let mut kinds = None;
        loop {
            self.check_environments().await?;
            let found = kinds.as_ref().unwrap_or(&self.managed).list(self.cluster).await?;
            if found.all.is_empty() {
                if kinds.take().is_none() {
                    return Ok(());
                }
                // Resources of other kinds may have been created meanwhile.
                continue;
            }
            for one in found.all.iter().filter(|one| one.deleted().is_none()) {
                let root = one.root(self.cluster, &self.served).await?;
                let is_new = root.deleted().is_none() && !asked.contains(root.uid());
                if is_new && !root.is_environment(&self.kinds) {
                    root.delete(self.cluster).await?;
                    asked.insert(root.uid().to_owned());
                }
            }
            let titles: Vec<String> = found.all.iter().map(ManagedObject::title).collect();
            let count = if titles.len() == 1 {
                "1 managed resource is".to_owned()
            } else {
                format!("{} managed resources are", titles.len())
            };
            let progress = format!("namespace {}: {count} left: {}", self.name(), few(&titles));
            if progress != printed {
                writeln!(console.out, "{progress}")?;
                if self.is_terminating() && printed.is_empty() {
                    writeln!(
                        console.err,
                        "note: the namespace is already being deleted, so this may never end. The \
                         repair is in {PAGE}"
                    )?;
                }
                console.out.flush()?;
                printed = progress;
            }
            self.check_time(&printed)?;
            kinds = Some(ManagedKinds::of(&found));
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Fails if the namespace has new environments, which the user has not seen.
    async fn check_environments(&self) -> Result<(), Failure> {
        let new = self.environments().await?;
        if new.is_empty() {
            return Ok(());
        }
        let titles: Vec<String> =
            new.iter().map(|one| Environment::from_object(&one.object).title()).collect();
        let were = if titles.len() == 1 { "was" } else { "were" };
        Err(Failure::Usage(format!(
            "{} {were} created meanwhile. Namespace {} was not deleted. Run the command again",
            few(&titles),
            self.name()
        )))
    }

    /// Fails at the end of the time limit.
    fn check_time(&self, progress: &str) -> Result<(), Failure> {
        if self.left() > Duration::ZERO {
            return Ok(());
        }
        let next = if self.is_terminating() {
            format!("This may never end. The repair is in {PAGE}")
        } else {
            format!("To continue, run: paved delete --namespace {}", self.name())
        };
        let longest = spell(self.longest);
        Err(Failure::TimedOut(format!("still not deleted after {longest}: {progress}. {next}")))
    }

    /// Deletes the namespace, and waits for its end.
    async fn delete(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let name = self.name();
        let begin = Instant::now();
        while !self.is_terminating() {
            self.check_environments().await?;
            match self.api.delete(name, &self.params()).await {
                Ok(()) => break,
                Err(kube::Error::Api(status)) if status.code == 404 => break,
                // The controller removes the namespace from its list a moment later.
                Err(kube::Error::Api(status)) if status.message.contains(REFUSAL) => {
                    if begin.elapsed() >= POLICY_DELAY.min(self.longest) {
                        return Err(Failure::Usage(format!(
                            "namespace {name} has no environments, but the admission policy still \
                             refuses its deletion. Check that the controller runs. The repair is \
                             in {PAGE}"
                        )));
                    }
                    sleep(NAMESPACE_INTERVAL).await;
                }
                Err(error) => {
                    let failure = self.cluster.explain(&error, &format!("delete namespace {name}"));
                    return Err(failure.into());
                }
            }
        }
        loop {
            let found = self.api.get_opt(name).await;
            let found = found
                .map_err(|error| self.cluster.explain(&error, &format!("read namespace {name}")))?;
            let uid = self.namespace.metadata.uid.as_ref();
            let Some(found) = found.filter(|found| found.metadata.uid.as_ref() == uid) else {
                let time = spell(self.begin.elapsed());
                writeln!(console.out, "namespace {name} is deleted after {time}")?;
                return Ok(());
            };
            self.check_time(&format!("namespace {name}: {}", remaining(&found)))?;
            sleep(NAMESPACE_INTERVAL).await;
        }
    }
}

/// The reasons why a namespace remains, as Kubernetes reports them.
fn remaining(namespace: &Namespace) -> String {
    let conditions = namespace.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let messages =
        conditions.filter(|one| one.status == "True").filter_map(|one| one.message.clone());
    let messages: Vec<String> = messages.map(|message| one_line(&message)).collect();
    if messages.is_empty() { "its deletion has begun".to_owned() } else { messages.join("; ") }
}

/// The first names, and the number of others.
fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}
