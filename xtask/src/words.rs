//! Compares a commit with its parent, and checks that it changes only comments and strings.
//!
//! Rust is compared by its tokens, TypeScript by the tokens of its compiler, YAML and JSON by their
//! values without descriptions. Other programs are compared by their lines without comments. Prose
//! and golden files are not compared.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::{Value, json};

use crate::{node, workspace};

/// Flags of `cargo xtask words`.
#[derive(clap::Args)]
pub struct Args {
    /// Commit to check.
    #[arg(default_value = "HEAD")]
    commit: String,
}

/// Lists the files in which more than comments and strings changed.
///
/// # Errors
/// Such a file exists, the commit does not exist, or a version of a file is unreadable.
pub fn run(args: &Args) -> Result<()> {
    let mut changed = Vec::new();
    let mut scripts = Vec::new();
    for change in changes(&args.commit)? {
        let Change { path, has_same_mode, before, after } = change;
        let (Some(before), Some(after)) = (before, after) else {
            if !is_text(&path) {
                changed.push(format!("{path}: was added or deleted"));
            }
            continue;
        };
        match extension(&path) {
            _ if !has_same_mode => changed.push(path),
            "ts" | "tsx" | "mjs" => {
                scripts.push(json!({"path": path, "before": before, "after": after}));
            }
            _ if is_same(&path, &before, &after).with_context(|| path.clone())? => {}
            _ => changed.push(path),
        }
    }
    changed.extend(changed_scripts(&scripts)?);
    ensure!(
        changed.is_empty(),
        "more than comments and strings changed:\n  {}",
        changed.join("\n  ")
    );
    println!("{}: only comments and strings changed", args.commit);
    Ok(())
}

/// A file of a commit.
struct Change {
    path: String,
    /// Whether the file stays executable, or stays not executable.
    has_same_mode: bool,
    before: Option<String>,
    after: Option<String>,
}

fn changes(commit: &str) -> Result<Vec<Change>> {
    // A merge is compared with its first parent. A renamed file counts as deleted and added.
    let flags = ["--no-commit-id", "--raw", "-r", "--no-renames", "-m", "--first-parent", "--root"];
    let listed = git(&[&["diff-tree"], &flags[..], &[commit]].concat())?;
    let change = |line: &str| {
        let (about, path) =
            line.split_once('\t').with_context(|| format!("unknown line of git: {line}"))?;
        let [from, to, _, _, status] =
            about.trim_start_matches(':').split(' ').collect::<Vec<_>>()[..]
        else {
            bail!("unknown line of git: {line}")
        };
        let text = |revision: &str| git(&["show", &format!("{revision}:{path}")]);
        Ok(Change {
            path: path.to_owned(),
            has_same_mode: from == to,
            before: (status != "A").then(|| text(&format!("{commit}^"))).transpose()?,
            after: (status != "D").then(|| text(commit)).transpose()?,
        })
    };
    listed.lines().map(change).collect()
}

/// Runs git and returns its output. Bytes that are not UTF-8 are replaced, because such a file is
/// not text.
fn git(args: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(args)
        .current_dir(workspace::root())
        .output()
        .context("starting git")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn extension(path: &str) -> &str {
    Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// Prose, golden files and pictures.
fn is_text(path: &str) -> bool {
    matches!(extension(path), "md" | "snap" | "txt" | "svg" | "png")
}

fn is_same(path: &str, before: &str, after: &str) -> Result<bool> {
    Ok(match extension(path) {
        _ if is_text(path) => true,
        // Helm templates look like YAML, but are not valid YAML.
        _ if path.contains("/templates/") => lines(before).eq(lines(after)),
        "rs" => rust(before)? == rust(after)?,
        "yaml" | "yml" => values(before)? == values(after)?,
        "json" => {
            without_descriptions(serde_json::from_str(before)?)
                == without_descriptions(serde_json::from_str(after)?)
        }
        _ => lines(before).eq(lines(after)),
    })
}

/// Tokens without comments. Each string is the empty string. A comma before a closing bracket is
/// left out, because the formatter adds and removes it.
fn rust(text: &str) -> Result<Vec<String>> {
    let stream: TokenStream = text.parse().map_err(|error| anyhow::anyhow!("not Rust: {error}"))?;
    let mut tokens = Vec::new();
    add_tokens(stream, &mut tokens);
    Ok(tokens)
}

fn add_tokens(stream: TokenStream, tokens: &mut Vec<String>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let start = tokens.len();
                tokens.push(open.to_owned());
                add_tokens(group.stream(), tokens);
                // A comment on an item is an attribute: `#[doc = ""]`.
                if tokens[start..].iter().map(String::as_str).eq(["[", "doc", "=", "\"\""]) {
                    tokens.truncate(start);
                    while tokens.last().is_some_and(|token| token == "#" || token == "!") {
                        tokens.pop();
                    }
                    continue;
                }
                if tokens.last().is_some_and(|token| token == ",") {
                    tokens.pop();
                }
                tokens.push(close.to_owned());
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let is_string = text.ends_with(['"', '#']) && text.contains('"');
                tokens.push(if is_string { "\"\"".to_owned() } else { text });
            }
            other => tokens.push(other.to_string()),
        }
    }
}

fn values(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(documents.into_iter().map(without_descriptions).collect())
}

fn without_descriptions(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| match value {
                Value::String(_) if matches!(name.as_str(), "description" | "message") => {
                    (name, Value::Null)
                }
                value => (name, without_descriptions(value)),
            });
            fields.collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(without_descriptions).collect(),
        other => other,
    }
}

/// Lines without comments; the first line of a script names its interpreter.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let is_comment = |line: &str| line.trim_start().starts_with('#') && !line.starts_with("#!");
    text.lines().map(str::trim_end).filter(move |line| !line.is_empty() && !is_comment(line))
}

/// Returns the files with changed tokens, by TypeScript's scanner.
fn changed_scripts(scripts: &[Value]) -> Result<Vec<String>> {
    if scripts.is_empty() {
        return Ok(Vec::new());
    }
    let web = workspace::root().join("web");
    node::install(&web)?;
    let mut child = Command::new("node")
        .arg("scripts/words.mjs")
        .current_dir(web)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting node")?;
    child
        .stdin
        .take()
        .context("node has no standard input")?
        .write_all(json!(scripts).to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "scripts/words.mjs: {}", output.status);
    let changed: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout)?;
    Ok(changed.into_keys().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::is_same;

    fn assert_same(path: &str, before: &str, after: &str, expected: bool) {
        assert_eq!(is_same(path, before, after).unwrap(), expected, "{before} -> {after}");
    }

    #[test]
    fn comments_and_strings_of_rust_may_change() {
        let before = "//! Old.\n/// One.\nfn f() { g(\"a\", r#\"b\"#,); } // tail";
        assert_same("a.rs", before, "fn f() {\n    g(\"another\", \"b\");\n}", true);
    }

    #[test]
    fn tokens_of_rust_may_not_change() {
        for after in
            ["fn f() { g(2); }", "fn h() { g(1); }", "#[test] fn f() { g(1); }", "fn f() { g(1) }"]
        {
            assert_same("a.rs", "fn f() { g(1); }", after, false);
        }
    }

    #[test]
    fn descriptions_of_schemas_may_change() {
        let schema = "type: object\ndescription: old # here\n";
        assert_same("a.yaml", schema, "type: object\ndescription: new\n", true);
        assert_same("a.yaml", schema, "type: string\ndescription: old\n", false);
        assert_same(
            "a.json",
            r#"{"description": "old", "a": 1}"#,
            r#"{"description": "new", "a": 2}"#,
            false,
        );
    }

    #[test]
    fn comments_of_scripts_may_change() {
        assert_same("a.sh", "# old\nls\n", "ls\n", true);
        assert_same("a.sh", "ls\n", "ls -l\n", false);
        assert_same("a.sh", "#!/bin/sh\nls\n", "#!/bin/bash\nls\n", false);
        assert_same(
            "chart/templates/a.yaml",
            "{{- if .Values.a }}\n# old\n",
            "{{- if .Values.a }}\n",
            true,
        );
    }
}
