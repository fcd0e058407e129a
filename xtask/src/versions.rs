//! `cargo xtask versions`: the programs of others that we run with, and the end of their support.
//!
//! [`FILE`] is the only list. SUPPORT.md, the scenarios of `.ci/run` and a release follow it.

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::civil::Date;
use serde::Deserialize;

use crate::eol::today;
use crate::markdown::table;
use crate::tools;

/// The list, in the repository's root.
pub const FILE: &str = "versions.yaml";

const CONTENT: &str = include_str!("../../versions.yaml");

/// Flags of `cargo xtask versions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Day of the check, for example 2026-11-28 [default: today].
    #[arg(long, value_name = "DATE")]
    on: Option<Date>,
    /// Fail, instead of warning, if a version is past its end and not kept.
    #[arg(long)]
    strict: bool,
    /// Print only the minor versions of this program that the scenarios run.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["on", "strict"])]
    minor: Option<String>,
    /// With --minor, print only the versions that run then [default: all that run].
    #[arg(long, value_name = "WHEN", requires = "minor")]
    runs: Option<Runs>,
}

/// The content of [`FILE`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Programs that platform teams install.
    supported: Vec<Row>,
    /// Programs that only tests and tasks run.
    tools: Vec<Row>,
}

/// A version of a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    program: String,
    version: String,
    /// The last day of support. None if the program's project announces no day.
    ends: Option<Date>,
    source: String,
    /// The last day on which we run the version after its end.
    kept_until: Option<Date>,
    reason: Option<String>,
    runs: Runs,
    note: Option<String>,
    /// Names of the programs in `xtask/src/tools.rs`.
    #[serde(default)]
    tools: Vec<String>,
}

/// When the scenarios run a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
pub enum Runs {
    /// In each run of `.ci/run`.
    #[serde(rename = "every change")]
    EveryChange,
    /// Only in `.ci/run --all`.
    #[serde(rename = "releases")]
    Releases,
    /// Not at all.
    #[serde(rename = "never")]
    Never,
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EveryChange => "for every change",
            Self::Releases => "for releases",
            Self::Never => "not tried",
        })
    }
}

/// Prints the versions past their end, or the minor versions of a program.
///
/// # Errors
/// With `strict`, a version is past its end and not kept. A program is unknown.
pub fn run(args: &Args) -> Result<()> {
    let versions = read()?;
    versions.check_tools()?;
    if let Some(program) = &args.minor {
        for minor in versions.minor(program, args.runs)? {
            println!("{minor}");
        }
        return Ok(());
    }
    let on = args.on.unwrap_or_else(today);
    let passed = versions.passed(on);
    for line in &passed {
        println!("warning: {line}");
    }
    if passed.is_empty() {
        println!("no version is past its end on {on}");
    }
    ensure!(!args.strict || passed.is_empty(), "{}", complaint(passed.len()));
    Ok(())
}

/// Fails if a version is past its end today and not kept.
///
/// # Errors
/// The error has a line for each such version.
pub fn ensure_supported() -> Result<()> {
    let passed = read()?.passed(today());
    ensure!(passed.is_empty(), "{}\n{}", complaint(passed.len()), passed.join("\n"));
    Ok(())
}

fn complaint(count: usize) -> String {
    format!(
        "{count} versions in {FILE} are past their end. Update each one in xtask/src/tools.rs and \
         {FILE}, or give it keptUntil and a reason"
    )
}

/// The table of SUPPORT.md.
///
/// # Errors
/// The list is invalid.
pub fn supported() -> Result<String> {
    let rows = read()?.supported.into_iter().map(|row| {
        let ends = row.ends.map_or_else(|| "not announced".to_owned(), |day| day.to_string());
        let source = row.source.split(": ").next().unwrap_or_default();
        let extension = row.kept_until.zip(row.reason.as_ref());
        let extension = extension.map(|(until, reason)| format!("kept until {until}: {reason}"));
        let notes: Vec<String> = extension.into_iter().chain(row.note).collect();
        let runs = row.runs.to_string();
        vec![row.program, row.version, format!("[{ends}]({source})"), runs, notes.join(". ")]
    });
    Ok(table(&["program", "version", "support ends", "scenarios run it", "remark"], rows))
}

/// Reads the list.
///
/// # Errors
/// A row is invalid. The error names the row.
pub fn read() -> Result<Versions> {
    parse(CONTENT)
}

fn parse(text: &str) -> Result<Versions> {
    let versions: Versions = serde_saphyr::from_str(text).with_context(|| FILE.to_owned())?;
    versions.rows().try_for_each(Row::check)?;
    Ok(versions)
}

impl Versions {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.supported.iter().chain(&self.tools)
    }

    /// A line for each version that runs although it is past its end, and not kept on this day.
    fn passed(&self, on: Date) -> Vec<String> {
        self.rows().filter_map(|row| row.passed(on)).collect()
    }

    /// Checks that each tool has a row with its version. Otherwise the end of its support would
    /// stay unnoticed.
    fn check_tools(&self) -> Result<()> {
        let tools = tools::all();
        for tool in &tools {
            let named = |row: &&Row| row.tools.iter().any(|name| name == tool.name);
            let rows: Vec<String> =
                self.rows().filter(named).map(|row| row.version.clone()).collect();
            ensure!(
                rows == [tool.version.trim_start_matches('v')],
                "{}: xtask/src/tools.rs has {}, and {FILE} has {rows:?}. Name each tool in one row",
                tool.name,
                tool.version
            );
        }
        let names: Vec<&String> = self.rows().flat_map(|row| &row.tools).collect();
        ensure!(names.len() == tools.len(), "{FILE} names unknown tools: {names:?}");
        Ok(())
    }

    /// The minor versions of a program that the scenarios run.
    ///
    /// # Errors
    /// The program has no such version.
    pub fn minor(&self, program: &str, runs: Option<Runs>) -> Result<Vec<String>> {
        let is_run = |row: &&Row| {
            row.program == program
                && row.runs != Runs::Never
                && runs.is_none_or(|runs| row.runs == runs)
        };
        let minor = |row: &Row| row.version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let found: Vec<String> = self.rows().filter(is_run).map(minor).collect();
        ensure!(!found.is_empty(), "{FILE} has no version of {program:?} that runs then");
        Ok(found)
    }
}

impl Row {
    fn check(&self) -> Result<()> {
        let Self { program, version, ends, kept_until, reason, runs, note, .. } = self;
        let row = format!("{FILE}: {program} {version}");
        if kept_until.is_some() != reason.is_some() {
            bail!("{row}: keptUntil and reason belong together. Set both, or none");
        }
        if kept_until.is_some_and(|kept| ends.is_none_or(|ends| kept <= ends)) {
            bail!("{row}: keptUntil must be a day after `ends`");
        }
        if *runs == Runs::Never && note.is_none() {
            bail!("{row} never runs. Add a note with the reason");
        }
        Ok(())
    }

    fn passed(&self, on: Date) -> Option<String> {
        let Self { program, version, source, kept_until, .. } = self;
        let ends = self.ends.filter(|ends| *ends < on && self.runs != Runs::Never)?;
        let extension = match kept_until {
            Some(until) if *until >= on => return None,
            Some(until) => format!(", and was kept until {until}"),
            None => String::new(),
        };
        Some(format!("{program} {version}: support ended on {ends}{extension}; {source}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::python::POSTGRES;

    /// A list with one row: the fields of the program `a` 1.0, and these.
    fn one(fields: &str) -> Result<Versions> {
        parse(&format!(
            "tools: []\nsupported:\n  - program: a\n    version: \"1.0\"\n    source: there\n{fields}"
        ))
    }

    fn on(day: &str) -> Date {
        day.parse().unwrap()
    }

    #[test]
    fn version_past_its_end_is_listed_unless_it_is_kept() {
        let ends = "    ends: 2026-11-30\n    runs: every change\n";
        let kept = format!("{ends}    keptUntil: 2027-05-31\n    reason: claims\n");
        let never = ends.replace("every change", "never") + "    note: why\n";
        let passed = "a 1.0: support ended on 2026-11-30";
        for (fields, day, expected) in [
            (ends, "2026-11-30", None),
            (ends, "2026-12-01", Some(format!("{passed}; there"))),
            (&kept, "2026-12-01", None),
            (&kept, "2027-05-31", None),
            (&kept, "2027-06-01", Some(format!("{passed}, and was kept until 2027-05-31; there"))),
            (&never, "2026-12-01", None),
            ("    runs: every change\n", "2099-01-01", None),
        ] {
            let found = one(fields).unwrap().passed(on(day));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{fields}{day}");
        }
    }

    #[test]
    fn invalid_row_is_named() {
        for (fields, expected) in [
            ("    runs: never\n", "a 1.0 never runs. Add a note"),
            ("    runs: releases\n    reason: x\n", "keptUntil and reason belong together"),
            (
                "    runs: releases\n    ends: 2027-01-01\n    keptUntil: 2027-01-01\n    reason: x\n",
                "keptUntil must be a day after `ends`",
            ),
            (
                "    runs: releases\n    keptUntil: 2027-01-01\n    reason: x\n",
                "a day after `ends`",
            ),
            ("    runs: releases\n    ends: soon\n", "soon"),
            ("    runs: sometimes\n", "sometimes"),
            ("    runs: releases\n    end: 2027-01-01\n", "end"),
        ] {
            let error = format!("{:#}", one(fields).unwrap_err());
            assert!(error.contains(expected), "{fields}{error}");
        }
    }

    /// The day of the last change of the list: a new version past its end fails here.
    #[test]
    fn list_has_no_version_past_its_end_unless_kept() {
        assert_eq!(read().unwrap().passed(on("2026-11-28")), Vec::<String>::new());
        let later = read().unwrap().passed(on("2027-06-01"));
        assert!(later.iter().any(|line| line.starts_with("Crossplane 1.20.13: ")), "{later:?}");
    }

    #[test]
    fn scenarios_of_a_change_run_the_newest_and_the_oldest_crossplane() {
        let versions = read().unwrap();
        let minor = |program, runs| versions.minor(program, runs).unwrap();
        assert_eq!(minor("Crossplane", Some(Runs::EveryChange)), ["2.4", "1.20"]);
        assert_eq!(minor("Crossplane", None), ["2.4", "2.3", "1.20"]);
        assert_eq!(minor("Kubernetes", Some(Runs::EveryChange)), ["1.34"]);
        assert_eq!(minor("Kubernetes", Some(Runs::Releases)), ["1.37", "1.36", "1.35"]);
        assert!(versions.minor("Crossplan", None).is_err());
    }

    #[test]
    fn every_tool_has_its_version_in_the_list() {
        read().unwrap().check_tools().unwrap();
    }

    #[test]
    fn tool_without_its_version_is_named() {
        let fields = "    runs: releases\n    tools: [crossplane]\n";
        let error = one(fields).unwrap().check_tools().unwrap_err().to_string();
        assert!(error.starts_with("crossplane: xtask/src/tools.rs has v2.5.0"), "{error}");
        assert!(error.contains("[\"1.0\"]"), "{error}");
    }

    #[test]
    fn newest_postgresql_of_the_list_is_that_of_its_package() {
        let (_, version) = POSTGRES.split_once("==").unwrap();
        let version = version.rsplit_once('.').unwrap().0;
        let versions = read().unwrap();
        let is_listed = |row: &Row| row.program == "PostgreSQL" && row.version == version;
        assert!(versions.rows().any(is_listed), "{version}");
    }
}
