//! Measures indirect words in documents and comments. An indirect word replaces a noun that the
//! sentence does not name. Their number per 1,000 words may only fall.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The record. Each line has a folder and its number of indirect words per 1,000 words.
const RECORD: &str = "xtask/prose.tsv";

/// The folders whose comments and documents are measured, besides each crate in `crates`.
/// `docs/reference` is generated or has tables.
const FOLDERS: [&str; 12] = [
    "README.md",
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

const WORDS: [&str; 11] = [
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

/// Writes or checks the record.
///
/// # Errors
/// A file is unreadable, or a density is higher than recorded.
pub fn run(args: &Args) -> Result<()> {
    let record = workspace::root().join(RECORD);
    let now = measure()?;
    if !args.check {
        let lines: Vec<String> =
            now.iter().map(|(folder, density)| format!("{folder}\t{density:.1}\n")).collect();
        return fs::write(&record, lines.concat()).with_context(|| format!("writing {RECORD}"));
    }
    let recorded = fs::read_to_string(&record).with_context(|| format!("reading {RECORD}"))?;
    let mut risen = Vec::new();
    for (folder, density) in &now {
        let most = recorded.lines().find_map(|line| line.strip_prefix(&format!("{folder}\t")));
        let most: f64 = most.with_context(|| format!("{RECORD} lacks {folder}"))?.parse()?;
        // The record is rounded.
        if *density > most + 0.05 {
            risen.push(format!(
                "{folder}: {density:.1} indirect words per 1,000, {most:.1} recorded"
            ));
        }
    }
    ensure!(
        risen.is_empty(),
        "name the thing instead: docs/contributing/developing.md\n  {}",
        risen.join("\n  ")
    );
    Ok(())
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
        Some("rs" | "ts" | "tsx" | "mjs") => comments(&fs::read_to_string(path)?, count),
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

fn comments(text: &str, count: &mut Count) {
    let prefixes = ["//", "/*", "* ", "*/"];
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
    use super::*;

    fn counted(read: fn(&str, &mut Count), text: &str) -> (u32, u32) {
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
        assert_eq!(
            counted(comments, "//! Such as this.\nlet what = 1;\n  /// Nobody `who`\n"),
            (2, 4)
        );
    }

    #[test]
    fn indirect_words_do_not_increase() {
        run(&Args { check: true })
            .map_err(|error| error.to_string())
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
