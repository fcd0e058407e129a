//! Measures indirect words in documents and comments. An indirect word replaces a noun that the
//! sentence does not name. Their number per 1,000 words may only fall.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// The record. Each line has a folder and its number of indirect words per 1,000 words.
const RECORD: &str = "xtask/prose.tsv";

/// The folders and files whose comments and documents are measured, besides each crate in `crates`.
/// `docs/reference` is generated or has tables.
const FOLDERS: [&str; 19] = [
    ".ci/run",
    "Cargo.toml",
    "Dockerfile",
    "README.md",
    "deny.toml",
    "examples",
    "package",
    "web/scripts",
    "docs",
    "src",
    "tests",
    "paved/src",
    "paved/tests",
    "demo",
    "e2e",
    "xtask",
    "web/src",
    "web/tests",
    "deploy",
];

/// Words that replace a noun.
pub const WORDS: [&str; 11] = [
    "what",
    "who",
    "whom",
    "whose",
    "whoever",
    "whatever",
    "nobody",
    "nothing",
    "somebody",
    "everybody",
    "everything",
];
const PAIRS: [(&str, &str); 4] =
    [("of", "which"), ("by", "which"), ("in", "which"), ("such", "as")];

/// Flags of `cargo xtask prose`.
#[derive(clap::Args)]
pub struct Args {
    /// Compare with the record instead of writing it. Fail if a density is higher.
    #[arg(long)]
    check: bool,
}

/// Writes or checks the record. Writing records new folders and lower densities only.
///
/// # Errors
/// A file is unreadable, or a density is higher than recorded.
pub fn run(args: &Args) -> Result<()> {
    let path = workspace::root().join(RECORD);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {RECORD}"))?;
    let recorded = parsed(&text)?;
    let now = measure()?;
    if args.check {
        if let Some(folder) = now.keys().find(|folder| !recorded.contains_key(*folder)) {
            bail!("{RECORD} lacks {folder}");
        }
    } else {
        fs::write(&path, lowered(&recorded, &now)).with_context(|| format!("writing {RECORD}"))?;
    }
    let increased = increases(&recorded, &now);
    ensure!(
        increased.is_empty(),
        "name the thing instead: docs/contributing/developing.md\n  {}",
        increased.join("\n  ")
    );
    Ok(())
}

/// The densities of a record, by folder.
fn parsed(record: &str) -> Result<BTreeMap<String, f64>> {
    let parsed_line = |line: &str| {
        let (folder, density) = line.split_once('\t')?;
        Some((folder.to_owned(), density.parse::<f64>().ok()?))
    };
    let wrong =
        |line: &str| format!("{RECORD}: found {line:?}; allowed: a folder, a tab, a number");
    record.lines().map(|line| parsed_line(line).with_context(|| wrong(line))).collect()
}

/// The record of the current densities. A recorded folder keeps its density if the current one is
/// higher.
fn lowered(recorded: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> String {
    let line = |(folder, density): (&String, &f64)| {
        let most = recorded.get(folder).unwrap_or(density);
        format!("{folder}\t{:.1}\n", density.min(*most))
    };
    now.iter().map(line).collect()
}

/// A line for each folder with a higher density than recorded.
fn increases(recorded: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> Vec<String> {
    let line = |(folder, density): (&String, &f64)| {
        let most = recorded.get(folder)?;
        // The record is rounded.
        (*density > most + 0.05)
            .then(|| format!("{folder}: {density:.1} indirect words per 1,000, {most:.1} recorded"))
    };
    now.iter().filter_map(line).collect()
}

fn measure() -> Result<BTreeMap<String, f64>> {
    let root = workspace::root();
    let mut folders = FOLDERS.map(str::to_owned).to_vec();
    for entry in fs::read_dir(root.join("crates")).context("reading crates")? {
        folders.push(format!("crates/{}", entry?.file_name().display()));
    }
    let mut densities = BTreeMap::new();
    for folder in folders {
        let mut count = Count::default();
        ensure!(root.join(&folder).exists(), "{folder} does not exist");
        add(&root.join(&folder), &mut count)?;
        densities.insert(folder, count.density());
    }
    Ok(densities)
}

/// The number of words, and of indirect words among them.
#[derive(Default)]
struct Count {
    words: u32,
    indirect: u32,
}

impl Count {
    /// The number of indirect words per 1,000 words.
    fn density(&self) -> f64 {
        f64::from(self.indirect) * 1000.0 / f64::from(self.words.max(1))
    }

    fn add(&mut self, text: &str) {
        let mut before = String::new();
        for word in text
            .split(|c: char| !c.is_alphabetic() && c != '\'' && c != '’')
            .filter(|word| !word.is_empty())
        {
            let word = word.to_lowercase();
            self.words += 1;
            let is_indirect =
                WORDS.contains(&word.as_str()) || PAIRS.contains(&(before.as_str(), word.as_str()));
            self.indirect += u32::from(is_indirect);
            before = word;
        }
    }
}

fn add(path: &Path, count: &mut Count) -> Result<()> {
    if path.is_dir() {
        let skipped = ["node_modules", "snapshots", "reference", "target", "dist"];
        for entry in fs::read_dir(path).with_context(|| format!("reading {}", path.display()))? {
            let entry = entry?;
            if !skipped.iter().any(|name| entry.file_name() == *name) {
                add(&entry.path(), count)?;
            }
        }
        return Ok(());
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => document(&fs::read_to_string(path)?, count),
        Some("rs" | "ts" | "tsx" | "mjs") => {
            comments(&fs::read_to_string(path)?, &["//", "/*", "* ", "*/"], count);
        }
        Some("yaml" | "yml" | "toml" | "sh" | "py") => {
            // Tests have inputs that are not UTF-8.
            comments(&String::from_utf8_lossy(&fs::read(path)?), &["#"], count);
        }
        _ if path.ends_with("Dockerfile") || path.ends_with(".ci/run") => {
            comments(&fs::read_to_string(path)?, &["#"], count);
        }
        _ => {}
    }
    Ok(())
}

/// Counts the prose of a document, without code, tables and the targets of links.
fn document(text: &str, count: &mut Count) {
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with('|') {
            let texts = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
            let texts: Vec<&str> = texts
                .split("](")
                .enumerate()
                .map(
                    |(n, part)| {
                        if n == 0 { part } else { part.split_once(')').map_or("", |it| it.1) }
                    },
                )
                .collect();
            count.add(&texts.join(" "));
        }
    }
}

/// Counts the lines that begin with a prefix.
fn comments(text: &str, prefixes: &[&str], count: &mut Count) {
    for line in text
        .lines()
        .map(str::trim_start)
        .filter(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)))
    {
        count.add(&line.split('`').step_by(2).collect::<Vec<_>>().join(" "));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn counted(read: impl Fn(&str, &mut Count), text: &str) -> (u32, u32) {
        let mut count = Count::default();
        read(text, &mut count);
        (count.indirect, count.words)
    }

    #[test]
    fn code_tables_and_targets_of_links_are_not_counted() {
        let text =
            "What [goes](who.md#what) by which.\n| what | who |\n```sh\nwhat\n```\nsee `what`\n";
        assert_eq!(counted(document, text), (2, 5));
    }

    #[test]
    fn comments_are_counted_and_code_is_not() {
        let rust = |text: &str, count: &mut Count| comments(text, &["//"], count);
        let text = "//! Such as this.\nlet what = 1;\n  /// Nobody `who`\n";
        assert_eq!(counted(rust, text), (2, 4));
        let yaml = |text: &str, count: &mut Count| comments(text, &["#"], count);
        assert_eq!(counted(yaml, "# Whoever reads.\nwhat: who\n"), (1, 2));
    }

    #[test]
    fn record_accepts_only_new_folders_and_lower_densities() {
        let densities = |all: &[(&str, f64)]| -> BTreeMap<String, f64> {
            all.iter().map(|(folder, density)| ((*folder).to_owned(), *density)).collect()
        };
        let recorded = parsed("gone\t1.0\nhigher\t2.0\nlower\t3.0\n").unwrap();
        let now = densities(&[("higher", 2.1), ("lower", 2.9), ("new", 7.0)]);
        assert_eq!(lowered(&recorded, &now), "higher\t2.0\nlower\t2.9\nnew\t7.0\n");
        let increased = ["higher: 2.1 indirect words per 1,000, 2.0 recorded"];
        assert_eq!(increases(&recorded, &now), increased);
        assert_eq!(increases(&recorded, &densities(&[("higher", 2.04)])), [""; 0]);
        assert!(parsed("higher\tmany").is_err() && parsed("higher").is_err());
    }

    #[test]
    fn indirect_words_do_not_increase() {
        run(&Args { check: true })
            .map_err(|error| error.to_string())
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
