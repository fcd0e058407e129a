//! Files of the repository that the demo contains: examples, and the providers' reduced CRDs. So the
//! demo runs without a checkout.

use std::borrow::Cow;

use anyhow::{Context, Result};
use rust_embed::{Embed, EmbeddedFile};
use serde_json::Value;

#[derive(Embed)]
#[folder = "../examples"]
#[include = "*/claim.yaml"]
#[include = "*/composition.yaml"]
#[include = "*/namespaced/xr.yaml"]
#[include = "gpu-workspace/observed/failing.yaml"]
struct Examples;

#[derive(Embed)]
#[folder = "../tests/schemas"]
struct Schemas;

/// The documents of a file below `examples/`.
pub fn example(path: &str) -> Result<Vec<Value>> {
    documents(path, Examples::get(path))
}

/// The providers' CRDs, reduced to the fields of our resources.
pub fn crds() -> Result<Vec<Value>> {
    let read = |path: Cow<'static, str>| documents(&path, Schemas::get(&path));
    Ok(Schemas::iter().map(read).collect::<Result<Vec<_>>>()?.concat())
}

fn documents(path: &str, file: Option<EmbeddedFile>) -> Result<Vec<Value>> {
    let file = file.with_context(|| format!("the demo does not contain {path}"))?;
    let text = std::str::from_utf8(&file.data).with_context(|| format!("reading {path}"))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).with_context(|| format!("reading {path}"))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
