//! The headers of a file for browsers: its type, and its lifetime in the cache.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use super::fingerprint::Fingerprints;
use crate::failure::Failure;

/// Browsers cache the file for a year without another request, because the name changes with the
/// content.
const FOREVER: &str = "public, max-age=31536000, immutable";

/// Browsers revalidate the cached file each time, and an unchanged file is not sent again.
const REVALIDATED: &str = "no-cache";

/// Worker scripts and manifests that refer to pages. They are uploaded after the pages.
const WORKERS: [&str; 4] = ["sw.js", "service-worker.js", "ngsw-worker.js", "ngsw.json"];

/// The turn of an upload. A file is uploaded before the files that refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// The name has a hash. No browser has cached the file yet, and no published page refers to it.
    Asset,
    /// Styles, pictures, and scripts that refer to assets.
    Other,
    /// HTML.
    Page,
    /// A worker that caches pages.
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

/// Rules for files that never change under one name.
pub(super) struct Rules {
    immutable: GlobSet,
    revalidate: GlobSet,
    hashes: Fingerprints,
}

impl Rules {
    /// The caller's rules override the name. Of two rules, the shorter lifetime wins.
    pub(super) fn new(
        immutable: &[Glob],
        revalidate: &[Glob],
        hashes: Fingerprints,
    ) -> Result<Self, Failure> {
        let (immutable, revalidate) =
            (set("--immutable", immutable)?, set("--revalidate", revalidate)?);
        Ok(Self { immutable, revalidate, hashes })
    }

    fn is_immutable(&self, key: &str) -> bool {
        !self.revalidate.is_match(key) && (self.immutable.is_match(key) || self.hashes.has(key))
    }

    /// The turn of the upload. HTML is a page under any name.
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

    /// The headers.
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

/// Text is UTF-8. A file of unknown type is served as bytes.
fn content_type(key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or(key);
    let kind = match name.rsplit_once('.').map(|(_, end)| end) {
        // Types that are missing in the list, or differ from the standard (RFC 9239).
        _ if name == "apple-app-site-association" => "application/json".to_owned(),
        Some("map") => "application/json".to_owned(),
        Some("mjs") => "text/javascript".to_owned(),
        _ => mime_guess::from_path(name).first_or_octet_stream().essence_str().to_owned(),
    };
    if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rules(immutable: &[&str], revalidate: &[&str]) -> Rules {
        let globs =
            |all: &[&str]| all.iter().map(|one| Glob::new(one).unwrap()).collect::<Vec<_>>();
        Rules::new(&globs(immutable), &globs(revalidate), Fingerprints::default()).unwrap()
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
    fn listed_hashed_files_override_name_detection() {
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
    fn named_files_come_before_the_files_that_name_them() {
        let rules = rules(&[], &[]);
        let turns =
            ["a-1a2b3c4d.js", "site.css", "sub/index.HTML", "sw.js"].map(|key| rules.turn(key));
        assert_eq!(turns, Turn::ALL);
        assert!(turns.is_sorted());
    }

    #[test]
    fn browsers_get_the_types_that_they_expect() {
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
