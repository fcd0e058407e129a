//! What a browser is told of a file: its type, and how long to keep it.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::failure::Failure;

/// Kept for a year, and not asked for again: the name changes with the content.
const FOREVER: &str = "public, max-age=31536000, immutable";

/// Kept, and asked for anew each time: unchanged, it is not sent again.
const REVALIDATED: &str = "no-cache";

/// Worker scripts and manifests that name pages: they come after the pages.
const WORKERS: [&str; 4] = ["sw.js", "service-worker.js", "ngsw-worker.js", "ngsw.json"];

/// When a file is uploaded: whatever others name comes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Its name carries a hash: nobody has it yet, nobody misses it.
    Asset,
    /// Styles, pictures, and scripts that name assets.
    Other,
    /// HTML.
    Page,
    /// A worker that keeps pages.
    Worker,
}

impl Turn {
    pub(super) const ALL: [Self; 4] = [Self::Asset, Self::Other, Self::Page, Self::Worker];
}

/// The headers of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Headers {
    pub(super) content_type: String,
    pub(super) cache_control: &'static str,
}

/// Which files never change under one name.
pub(super) struct Rules {
    immutable: GlobSet,
    revalidate: GlobSet,
}

impl Rules {
    /// What the caller says wins over what names look like; of two, the shorter life.
    pub(super) fn new(immutable: &[Glob], revalidate: &[Glob]) -> Result<Self, Failure> {
        Ok(Self { immutable: set("--immutable", immutable)?, revalidate: set("--revalidate", revalidate)? })
    }

    fn is_immutable(&self, key: &str) -> bool {
        !self.revalidate.is_match(key) && (self.immutable.is_match(key) || carries_hash(key))
    }

    /// When it is uploaded. HTML is a page whatever its name.
    pub(super) fn turn(&self, key: &str) -> Turn {
        let name = key.rsplit('/').next().unwrap_or(key);
        if WORKERS.contains(&name) {
            Turn::Worker
        } else if is_page(key) {
            Turn::Page
        } else if self.is_immutable(key) {
            Turn::Asset
        } else {
            Turn::Other
        }
    }

    /// What is told of it.
    pub(super) fn headers(&self, key: &str) -> Headers {
        let forever = self.turn(key) == Turn::Asset;
        Headers {
            content_type: content_type(key),
            cache_control: if forever { FOREVER } else { REVALIDATED },
        }
    }
}

/// A `*` stays within one folder, as in a shell.
fn set(flag: &str, globs: &[Glob]) -> Result<GlobSet, Failure> {
    let wrong = |error: globset::Error| Failure::Usage(format!("{flag}: {error}"));
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(GlobBuilder::new(glob.glob()).literal_separator(true).build().map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

fn is_page(key: &str) -> bool {
    let extension = Path::new(key).extension().and_then(|end| end.to_str()).unwrap_or_default();
    ["html", "htm", "xhtml"].iter().any(|page| extension.eq_ignore_ascii_case(page))
}

/// Text is UTF-8; what is not known is bytes.
fn content_type(key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or(key);
    let kind = match name.rsplit_once('.').map(|(_, end)| end) {
        // What no list has, or not as standards have it (RFC 9239).
        _ if name == "apple-app-site-association" => "application/json".to_owned(),
        Some("map") => "application/json".to_owned(),
        Some("mjs") => "text/javascript".to_owned(),
        _ => mime_guess::from_path(name).first_or_octet_stream().essence_str().to_owned(),
    };
    if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind }
}

/// Whether a file's name carries a hash of what is in it, as bundlers write it: `app-1a2b3c4d.js`, `main.5QXZ3KJV.css`,
/// `index-BfLp4nCs.js`. A date or a word is none; where in doubt it is none, as asking once more costs little, and a file that
/// is kept for a year by mistake cannot be called back.
fn carries_hash(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or(key);
    let mut pieces = name.split(['.', '-', '_', '~']);
    // What comes first is the name itself, unless there is nothing else before the extension.
    let alone = name.split('.').count() == 2 && name.split(['-', '_', '~']).count() == 1;
    if !alone {
        pieces.next();
    }
    pieces.any(is_hash)
}

/// Letters and digits that alternate as they do by chance, never as in a word with a number behind it.
fn is_hash(piece: &str) -> bool {
    const SHORTEST: usize = 8;
    const LONGEST: usize = 64;
    let has = |test: fn(&char) -> bool| piece.chars().any(|c| test(&c));
    let (lower, upper) = (has(char::is_ascii_lowercase), has(char::is_ascii_uppercase));
    let hexadecimal = piece.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    let changes = match (lower, upper) {
        (true, false) if hexadecimal => 2,
        (false, true) => 2,
        (true, true) => 4,
        _ => return false,
    };
    let plain = piece.chars().all(|c| c.is_ascii_alphanumeric()) && has(char::is_ascii_digit);
    plain && (SHORTEST..=LONGEST).contains(&piece.len()) && alternations(piece) >= changes
}

/// How often one kind of character follows another.
fn alternations(piece: &str) -> usize {
    let kind = |c: &u8| (c.is_ascii_digit(), c.is_ascii_uppercase());
    piece.as_bytes().windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rules(immutable: &[&str], revalidate: &[&str]) -> Rules {
        let globs = |all: &[&str]| all.iter().map(|one| Glob::new(one).unwrap()).collect::<Vec<_>>();
        Rules::new(&globs(immutable), &globs(revalidate)).unwrap()
    }

    #[test]
    fn a_hash_in_the_name_is_known_as_bundlers_write_it() {
        for key in [
            "assets/index-BfLp4nCs.js",
            "static/js/main.073c9b0a.chunk.js",
            "main-XJ2KTNAB.js",
            "app.3f2a9c1b7d.css",
            "assets/logo-5d41402abc4b2a76b9719d911017c592.svg",
            "media/5d41402abc4b2a76b9719d911017c592.png",
            "app-1a2b3c4d.js.map",
        ] {
            assert!(carries_hash(key), "{key}");
        }
        for key in [
            "index.html",
            "report-20240115.pdf",
            "assets/index.js",
            "jquery-3.7.1.min.js",
            "deadbeef.js",
            "background.png",
            "vendor-DataGrid.js",
            "user-Guide2024.pdf",
            "the-decade2024.png",
            "notes-RELEASE1.txt",
            "1a2b3c4d/app.js",
            "IMG_20240115.JPG",
            "roboto-v30-latin.woff2",
            "a.js",
            "",
        ] {
            assert!(!carries_hash(key), "{key}");
        }
    }

    #[test]
    fn pages_are_asked_for_each_time_and_assets_once() {
        let rules = rules(&[], &[]);
        let of = |key: &str| rules.headers(key).cache_control;
        assert_eq!(of("assets/index-BfLp4nCs.js"), FOREVER);
        for key in ["index.html", "index-BfLp4nCs.html", "favicon.ico", "remoteEntry.js"] {
            assert_eq!(of(key), REVALIDATED, "{key}");
        }
    }

    #[test]
    fn the_caller_knows_better_than_the_names() {
        let rules = rules(&["assets/**", "fonts/*.woff2"], &["assets/old/**", "*1a2b3c4d*"]);
        for (key, turn) in [
            ("assets/a/plain.js", Turn::Asset),
            ("assets/index.html", Turn::Page),
            ("assets/old/plain.js", Turn::Other),
            ("fonts/a.woff2", Turn::Asset),
            ("fonts/a/b.woff2", Turn::Other),
            ("app-1a2b3c4d.js", Turn::Other),
        ] {
            assert_eq!(rules.turn(key), turn, "{key}");
        }
    }

    #[test]
    fn what_others_name_comes_before_them() {
        let rules = rules(&[], &[]);
        let turns = ["a-1a2b3c4d.js", "site.css", "sub/index.HTML", "sw.js"].map(|key| rules.turn(key));
        assert_eq!(turns, Turn::ALL);
        assert!(turns.is_sorted());
    }

    #[test]
    fn types_are_what_browsers_expect() {
        for (key, kind) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.js.map", "application/json"),
            ("a.json", "application/json"),
            ("site.webmanifest", "application/manifest+json"),
            ("a.svg", "image/svg+xml"),
            ("a.wasm", "application/wasm"),
            ("a.woff2", "font/woff2"),
            ("a.avif", "image/avif"),
            ("robots.txt", "text/plain; charset=utf-8"),
            (".well-known/apple-app-site-association", "application/json"),
            ("LICENSE", "application/octet-stream"),
        ] {
            assert_eq!(content_type(key), kind, "{key}");
        }
    }
}
