//! Finds import circles: sibling modules that import each other, directly or through others. Such
//! modules can only be understood, tested and moved together.
//!
//! The imports of a module include those of its children. A parent and its child may import each
//! other. Items under `#[cfg(test)]` are left out. A name that a parent re-exports from a sibling
//! counts as the parent's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The path of a module below the root of its crate, or a path in a source file.
type Module = Vec<String>;

/// For each module the siblings that it imports, each with a line about one import.
type Edges = BTreeMap<Module, BTreeMap<Module, String>>;

/// The text of each source file, by the file's path below `src`.
pub type Sources = BTreeMap<PathBuf, String>;

/// Reads the Rust files below a folder.
pub fn read(folder: &Path) -> Result<Sources> {
    let (mut sources, mut folders) = (Sources::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("reading {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.insert(path.strip_prefix(folder)?.to_owned(), fs::read_to_string(&path)?);
            }
        }
    }
    Ok(sources)
}

/// The imports that form the circles of a crate: one line for each pair of modules.
pub fn circles(sources: &Sources) -> Result<Vec<String>> {
    let mut found = Imports::default();
    for (path, text) in sources {
        let stream: TokenStream =
            text.parse().map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let tokens = flatten(stream);
        let path = path.with_extension("");
        let mut module: Module =
            path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        module.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
        found.scan(&module, &tokens.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let edges = found.edges();
    let mut lines = Vec::new();
    for (from, targets) in &edges {
        let circular = targets.iter().filter(|(to, _)| reached(&edges, to).contains(from));
        lines.extend(circular.map(|(_, line)| line.clone()));
    }
    Ok(lines)
}

/// The tokens of a file in a row, with brackets.
fn flatten(stream: TokenStream) -> Vec<String> {
    let tokens = stream.into_iter().flat_map(|tree| {
        let TokenTree::Group(group) = tree else { return vec![tree.to_string()] };
        let [open, close] = match group.delimiter() {
            Delimiter::Parenthesis => ["(", ")"],
            Delimiter::Brace => ["{", "}"],
            Delimiter::Bracket | Delimiter::None => ["[", "]"],
        };
        [vec![open.to_owned()], flatten(group.stream()), vec![close.to_owned()]].concat()
    });
    tokens.collect()
}

/// The modules of a crate, and the paths that each of them imports or names.
#[derive(Default)]
struct Imports {
    modules: BTreeSet<Module>,
    tests: BTreeSet<Module>,
    paths: Vec<(Module, Module)>,
}

impl Imports {
    fn scan(&mut self, module: &Module, mut rest: &[&str]) {
        self.modules.insert(module.clone());
        let child =
            |name: &str| module.iter().cloned().chain([name.to_owned()]).collect::<Module>();
        while !rest.is_empty() {
            rest = match rest {
                ["#", "[", "cfg", "(", "test", ")", "]", after @ ..] => {
                    let (item, after) = after.split_at(item_length(after));
                    if let [.., "mod", name, ";"] = item {
                        self.tests.insert(child(name));
                    }
                    after
                }
                ["mod", name, "{", ..] => {
                    let (content, after) = rest[2..].split_at(item_length(&rest[2..]));
                    self.scan(&child(name), content);
                    after
                }
                ["use", tree @ ..] if !tree.starts_with(&["<"]) => {
                    let (tree, after) = tree.split_at(item_length(tree));
                    self.add_tree(module, tree);
                    after
                }
                ["crate" | "super" | "self", ":", ":", ..] => {
                    let pairs =
                        rest.chunks(3).take_while(|part| matches!(part, [_, ":", ":"])).count();
                    let path = rest.iter().step_by(3).take(pairs + 1).map(|&name| name.to_owned());
                    self.paths.push((module.clone(), path.collect()));
                    rest.get(3 * pairs + 1..).unwrap_or_default()
                }
                _ => &rest[1..],
            };
        }
    }

    /// Adds the paths of a `use`. The path of each group is added, too. It leads to a parent of the
    /// group's imports.
    fn add_tree(&mut self, module: &Module, tree: &[&str]) {
        let (mut groups, mut path, mut tokens) = (vec![0], Module::new(), tree.iter());
        while let Some(token) = tokens.next() {
            match *token {
                ":" => {}
                "as" => drop(tokens.next()),
                "{" => groups.push(path.len()),
                end @ ("," | "}" | ";") => {
                    self.paths.push((module.clone(), path.clone()));
                    path.truncate(groups.last().copied().unwrap_or_default());
                    groups.pop_if(|_| end == "}");
                }
                name => path.push(name.to_owned()),
            }
        }
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (from, path) in &self.paths {
            let to = self.target(from, path);
            let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            let is_test = (1..=from.len()).any(|length| self.tests.contains(&from[..length]));
            if !is_test && shared < from.len().min(to.len()) {
                let targets = edges.entry(from[..=shared].to_vec()).or_default();
                let line = || format!("{} imports {}", from.join("::"), path.join("::"));
                targets.entry(to[..=shared].to_vec()).or_insert_with(line);
            }
        }
        edges
    }

    /// The last module in a path. For a path to another crate, the module itself.
    fn target(&self, from: &Module, path: &[String]) -> Module {
        let mut target = from.clone();
        for name in path {
            match name.as_str() {
                "self" => {}
                "crate" => target.clear(),
                "super" => drop(target.pop()),
                name => {
                    target.push(name.to_owned());
                    if !self.modules.contains(&target) {
                        target.pop();
                        break;
                    }
                }
            }
        }
        target
    }
}

/// How many tokens an item takes: up to its semicolon, or to the end of its braces.
fn item_length(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth <= 0 && [";", "}"].contains(token) {
            return index + 1;
        }
    }
    tokens.len()
}

/// The modules that a module imports, directly or through others.
fn reached<'a>(edges: &'a Edges, module: &'a Module) -> BTreeSet<&'a Module> {
    let (mut found, mut left) = (BTreeSet::new(), vec![module]);
    while let Some(module) = left.pop() {
        let next = edges.get(module).into_iter().flat_map(BTreeMap::keys);
        left.extend(next.filter(|module| found.insert(*module)));
    }
    found
}

#[cfg(test)]
mod tests;
