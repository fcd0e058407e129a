//! Every HTTP server of a product has limits. `http-server` serves health and metrics, and the
//! portal has its own server. A server by `axum::serve` has no limit at all.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use xtask::workspace;

/// Ways to serve HTTP.
const SERVERS: [&str; 4] =
    ["axum::serve", "axum_server::", "serve_connection", "hyper_util::server"];

/// The modules with limits. `src/server.rs` serves gRPC by tonic, with limits of its own.
const ALLOWED: [&str; 2] = ["crates/http-server/src/lib.rs", "crates/paved-portal/src/serve"];

/// The fake cluster, which only `paved demo` serves, on loopback, and programs for developers.
const NO_PRODUCT: [&str; 4] = ["crates/fake-kube/", "demo/", "e2e/", "xtask/"];

/// The sources of a folder, without tests in folders of their own.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_skipped = ["target", "tests", "node_modules", "benches", "examples"];
        if path.is_dir() && !name.starts_with('.') && !is_skipped.contains(&name.as_str()) {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The ways to serve in a source, also behind an import like `use axum::{Router, serve}`.
fn servers(text: &str) -> Vec<&'static str> {
    let compact: String = text.split_whitespace().collect();
    let imports = compact.split("useaxum::{").skip(1).filter_map(|rest| rest.split('}').next());
    let is_imported = imports
        .flat_map(|names| names.split(','))
        .any(|name| name.split("::").next() == Some("serve"));
    let mut found: Vec<_> = SERVERS.into_iter().filter(|way| text.contains(way)).collect();
    found.extend(is_imported.then_some("axum::serve"));
    found
}

#[test]
fn products_serve_http_only_by_modules_with_limits() {
    let root = workspace::root();
    let mut files = Vec::new();
    for folder in ["src", "crates", "paved"] {
        sources(&root.join(folder), &mut files);
    }
    let mut allowed = 0;
    for file in files {
        let path = file.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if NO_PRODUCT.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let found = servers(&fs::read_to_string(&file).unwrap());
        let is_allowed = ALLOWED.iter().any(|module| path.starts_with(module));
        assert!(found.is_empty() || is_allowed, "{path}: found {found:?}; use crates/http-server");
        allowed += usize::from(!found.is_empty());
    }
    assert!(allowed >= 2, "the modules with limits have moved");
}

#[test]
fn server_behind_an_import_is_found() {
    for text in [
        "axum::serve(listener, router)",
        "use axum::{Router, serve};",
        "use axum::{\n    Router,\n    serve::Listener,\n};",
        "use hyper_util::server::conn::auto::Builder;",
    ] {
        assert!(!servers(text).is_empty(), "{text}");
    }
    assert!(servers("use axum::{Router, routing::get};").is_empty());
}
