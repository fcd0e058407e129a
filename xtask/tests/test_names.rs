//! The name of a test starts with a noun. It names the subject, the condition and the result.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use xtask::{prose, workspace};

/// The folders with tests.
const FOLDERS: [&str; 8] =
    ["src", "tests", "crates", "paved", "demo", "e2e/src", "xtask", "benches"];

/// The names of the functions with the attribute `#[test]` or `#[tokio::test]`.
fn test_names(source: &str) -> Vec<&str> {
    let mut is_test = false;
    let mut names = Vec::new();
    for line in source.lines().map(str::trim_start) {
        let attribute = line.strip_prefix("#[").unwrap_or_default();
        is_test |= attribute.starts_with("test]") || attribute.starts_with("tokio::test");
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
            names.extend(is_test.then_some(name));
            is_test = false;
        }
    }
    names
}

fn is_indirect(name: &str) -> bool {
    name.split('_').next().is_some_and(|first| prose::WORDS.contains(&first))
}

fn visit(folder: &Path, visitor: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, visitor);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visitor(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn test_names_start_with_no_indirect_word() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for folder in FOLDERS {
        visit(&workspace::root().join(folder), &mut |path, source| {
            let names = test_names(source);
            count += names.len();
            let path = path.strip_prefix(workspace::root()).unwrap().display();
            let indirect = names.iter().filter(|name| is_indirect(name));
            wrong.extend(indirect.map(|name| format!("{path}: {name}")));
        });
    }
    assert!(count > 1000, "found only {count} tests");
    assert!(
        wrong.is_empty(),
        "Name the subject of the test, for example `expired_token_is_rejected`. These names start \
         with an indirect word:\n  {}",
        wrong.join("\n  ")
    );
}

#[test]
fn indirect_names_are_found() {
    let source = "#[test]\nfn what_runs_stays() {}\n    #[tokio::test(start_paused = true)]\n    \
                  async fn nobody_waits() {}\nfn who_helps() {}\n#[test]\nfn whole_body_is_read() {}\n";
    let names = test_names(source);
    assert_eq!(names, ["what_runs_stays", "nobody_waits", "whole_body_is_read"]);
    assert_eq!(names.iter().map(|name| is_indirect(name)).collect::<Vec<_>>(), [true, true, false]);
}
