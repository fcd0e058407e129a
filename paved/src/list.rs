//! `paved list`: lists environments of all kinds, one row each.

mod follow;
mod rows;

use std::pin::pin;

use function_paved_road::lifecycle::Span;
use futures::stream;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::api::DynamicObject;
use paved_client::cluster::{Cluster, Kind, Kinds, Selector, is_denied, pages};
use paved_client::environment::Environment;

use crate::Console;
use crate::cli::{List, Listing, Sort};
use crate::documents::{self, Packed};
use crate::failure::Failure;
use crate::style;
pub(crate) use rows::name;
use rows::{Line, Table};

/// The number of kinds that are listed at once.
const CONCURRENCY: usize = 4;

/// Lists all environments. With `--watch`, also prints every change.
pub(crate) async fn run(args: &List, console: &mut Console<'_>) -> Result<(), Failure> {
    let cluster = args.access.connect().await?;
    let kinds = Kinds::discover(&cluster).await?;
    let kinds = match &args.kind {
        Some(kind) => kinds.called(kind)?,
        None => kinds.all().to_vec(),
    };
    if args.output == Some(Listing::Markdown) {
        let why = "-o markdown is for one environment: paved status NAME -o markdown";
        return Err(Failure::Usage(why.to_owned()));
    }
    let is_table = matches!(args.output, None | Some(Listing::Wide));
    if !is_table && args.sort != Sort::Name {
        return Err(Failure::Usage("--sort sorts rows; allowed: -o wide".to_owned()));
    }
    let has_namespace = args.all_namespaces || cluster.is_namespace_chosen;
    let namespace = (!args.all_namespaces).then(|| cluster.namespace.clone());
    let expiring = args.expiring.and_then(Span::length);
    let expiring = expiring.and_then(|time| Timestamp::now().checked_add(time).ok());
    let place = Place { cluster, kinds, namespace, labels: None, expiring };
    let table = Table::new(args.all_namespaces, args.output == Some(Listing::Wide), args.sort);
    match args.output {
        None | Some(Listing::Wide) if args.watch => follow::run(&place, table, console).await,
        Some(_) if args.watch => {
            Err(Failure::Usage("--watch prints rows; allowed: -o wide".to_owned()))
        }
        None | Some(Listing::Wide) => tabulate(&place, table, console).await,
        Some(Listing::Markdown) => Ok(()),
        Some(Listing::Name) => {
            let form = |kind: &Kind, object| name(kind, &object, has_namespace);
            let mut names = place.all(console, form).await?;
            names.sort();
            names.iter().try_for_each(|name| writeln!(console.out, "{name}"))?;
            Ok(())
        }
        Some(Listing::Json) => {
            let items = place.all(console, |_, object| Packed::from_object(&object)).await?;
            documents::print_list(&items, documents::Format::Json, console)
        }
        Some(Listing::Yaml) => {
            let items = place.all(console, |_, object| Packed::from_object(&object)).await?;
            documents::print_list(&items, documents::Format::Yaml, console)
        }
    }
}

/// Selects environments of a cluster.
pub(crate) struct Place {
    pub(crate) cluster: Cluster,
    pub(crate) kinds: Vec<Kind>,
    /// `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    /// The labels; `None` for all environments.
    pub(crate) labels: Option<Selector>,
    /// The time before which a running environment expires, or a stopped one is deleted.
    pub(crate) expiring: Option<Timestamp>,
}

impl Place {
    /// All environments, each converted with `form`. Kinds that the caller may not list are skipped
    /// with a note.
    pub(crate) async fn all<T>(
        &self,
        console: &mut Console<'_>,
        form: impl Fn(&Kind, DynamicObject) -> T,
    ) -> Result<Vec<T>, Failure> {
        let form = &form;
        let listed = stream::iter(&self.kinds)
            .map(|kind| async move { (kind, self.list_kind(kind, form).await) });
        let mut listed = listed.buffered(CONCURRENCY);
        let mut all = Vec::new();
        let mut denied = Vec::new();
        while let Some((kind, found)) = listed.next().await {
            match found {
                Ok(found) => all.extend(found),
                Err(error) if is_denied(&error) => denied.push((kind, error)),
                Err(error) => return Err(self.explain(&error, kind)),
            }
        }
        drop(listed);
        self.tell_denied(&denied, console)?;
        Ok(all)
    }

    /// Lists a kind's environments page by page, and converts each environment with `form`.
    async fn list_kind<T>(
        &self,
        kind: &Kind,
        form: impl Fn(&Kind, DynamicObject) -> T,
    ) -> kube::Result<Vec<T>> {
        let mut all = Vec::new();
        let (namespace, labels) = (self.namespace.as_deref(), self.labels.as_ref());
        let mut pages = pin!(pages(&self.cluster, kind, namespace, labels));
        while let Some(page) = pages.try_next().await? {
            let selected = page.into_iter().filter(|object| self.has(object));
            all.extend(selected.map(|object| form(kind, object)));
        }
        Ok(all)
    }

    /// Whether the end of an environment comes in time, if only such environments are selected.
    fn has(&self, object: &DynamicObject) -> bool {
        let Some(last) = self.expiring else { return true };
        rows::end(&Environment::from_object(object)).is_some_and(|at| at <= last)
    }

    /// A failure if the caller may list no kind. Otherwise, prints a note for each hidden kind.
    fn tell_denied(
        &self,
        denied: &[(&Kind, kube::Error)],
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        if let Some((kind, error)) = denied.first().filter(|_| denied.len() == self.kinds.len()) {
            return Err(self.explain(error, kind));
        }
        for (kind, _) in denied {
            writeln!(console.err, "note: you may not list {}; skipped", kind.full_name())?;
        }
        Ok(())
    }

    /// The message for an empty list.
    pub(crate) fn nothing(&self) -> String {
        let place = self
            .namespace
            .as_ref()
            .map_or_else(String::new, |name| format!(" in namespace {name}"));
        let labels = self
            .labels
            .as_ref()
            .map_or_else(String::new, |labels| format!(" with labels {labels}"));
        let end = self
            .expiring
            .map_or_else(String::new, |at| format!(" expire or are deleted before {at}"));
        format!("no environments{place}{labels}{end}")
    }

    fn explain(&self, error: &kube::Error, kind: &Kind) -> Failure {
        self.cluster.explain(error, &self.act("list", kind)).into()
    }

    /// An action on a kind, with its namespace, for error messages.
    fn act(&self, verb: &str, kind: &Kind) -> String {
        let place = match &self.namespace {
            Some(namespace) => format!("namespace {namespace}"),
            None => "all namespaces".to_owned(),
        };
        format!("{verb} {} in {place}", kind.name())
    }
}

async fn tabulate(
    place: &Place,
    mut table: Table,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let now = Timestamp::now();
    let lines = place
        .all(console, |_, object| Line::from_environment(&Environment::from_object(&object), now))
        .await?;
    if lines.is_empty() {
        writeln!(console.err, "{}", place.nothing())?;
        return Ok(());
    }
    let first = lines.iter().find(|line| line.needs_attention()).or(lines.first());
    let next = first.map(Line::status);
    table.print(lines, now, console)?;
    if let Some(next) = next {
        style::next(&next, console)?;
    }
    Ok(())
}
