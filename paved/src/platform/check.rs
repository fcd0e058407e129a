//! `--check`: environments composed with the old and with the new Settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use function_paved_road::function::Outside;
use jiff::Timestamp;
use serde_json::Value;
use simulator::core::{SLOT, rendered};

use crate::Console;
use crate::changes::between;
use crate::cli::{Platform, Sources};
use crate::documents::yaml;
use crate::failure::Failure;
use crate::files::{self, Document, shown};
use crate::function;
use crate::paint::{BOLD, YELLOW};
use crate::subject::discreet::without_secrets;
use crate::subject::{Subject, kind, observed};

/// Shows for every environment what the new Settings would change in it; one that they do not compose is a failure.
pub(super) fn run(args: &Platform, console: &mut Console<'_>) -> Result<(), Failure> {
    let seen = observed::read(&args.observed, console)?;
    let mut failures = Vec::new();
    for document in environments(args, console)? {
        let change = Change { document: &document, seen: &seen, now: Timestamp::now() };
        match change.show(args, console) {
            Ok(()) => {}
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => failures.push(failure),
        }
    }
    Failure::of_all(failures)
}

/// The claims and XRs of all files.
fn environments(args: &Platform, console: &mut Console<'_>) -> Result<Vec<Document>, Failure> {
    let mut environments = Vec::new();
    for path in &args.check {
        let mut documents = files::read(path, console)?;
        documents.retain(|document| kind::find(&document.value).is_ok());
        if documents.is_empty() {
            return Err(Failure::Usage(format!("{} holds no claim and no XR", shown(path))));
        }
        environments.extend(documents);
    }
    Ok(environments)
}

/// An environment, before and after.
struct Change<'a> {
    document: &'a Document,
    seen: &'a [Value],
    now: Timestamp,
}

impl Change<'_> {
    fn show(&self, args: &Platform, console: &mut Console<'_>) -> Result<(), Failure> {
        let (title, after) = self.composed(Some(&args.settings), console)?;
        let before = match self.composed(args.old.as_deref(), console) {
            Ok((_, before)) => before,
            Err(Failure::Fatal { message, .. }) => {
                writeln!(
                    console.err,
                    "{YELLOW}note:{YELLOW:#} {title}: without the new Settings: {message}"
                )?;
                BTreeMap::new()
            }
            Err(other) => return Err(other),
        };
        let slots: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let none = String::new();
        let (mut told, [mut new, mut changed, mut gone]) = (String::new(), [0, 0, 0]);
        for slot in slots {
            let difference =
                between(slot, before.get(slot).unwrap_or(&none), after.get(slot).unwrap_or(&none));
            match (before.contains_key(slot), after.contains_key(slot)) {
                _ if difference.is_empty() => {}
                (false, _) => new += 1,
                (true, false) => gone += 1,
                (true, true) => changed += 1,
            }
            told.push_str(&difference);
        }
        if told.is_empty() {
            writeln!(console.out, "{BOLD}{title}{BOLD:#}: nothing changes")?;
        } else {
            let counts = format!("{new} new, {changed} changed, {gone} gone");
            writeln!(console.out, "{BOLD}{title}{BOLD:#}: {counts}\n{told}")?;
        }
        Ok(())
    }

    /// File, kind and name, and what is composed with these Settings: each slot's resource as YAML, without secrets.
    fn composed(
        &self,
        settings: Option<&Path>,
        console: &mut Console<'_>,
    ) -> Result<(String, BTreeMap<String, String>), Failure> {
        let sources = Sources { settings: settings.map(Path::to_owned), composition: None };
        let subject = Subject::prepare(self.document, &sources, &[], self.seen, console)?;
        // The same random numbers before and after: what is generated is no change.
        let mut random = |buffer: &mut [u8]| buffer.fill(7);
        let outside = Outside { now: self.now, random: &mut random };
        let response = function::answer_with(&subject.world, &subject.step.input, outside)
            .map_err(|message| subject.fatal(message))?;
        subject.check(&response, console)?;
        let rendered =
            rendered(&subject.world, &response).map_err(|error| subject.fatal(error.to_string()))?;
        let mut resources = BTreeMap::new();
        for mut resource in rendered.resources {
            let slot = resource["metadata"]["annotations"][SLOT].as_str().unwrap_or_default().to_owned();
            without_secrets(&mut resource);
            resources.insert(slot, yaml(&resource)?);
        }
        Ok((subject.title, resources))
    }
}
