//! The public SSH keys of `paved init --ssh-key`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::draft::Draft;
use crate::failure::Failure;
use crate::target::Target;

const FIELD: &str = "parameters.sshPublicKeys";

/// Bytes of a file. A claim has at most a few keys of some hundred bytes each.
const MAX_SIZE: u64 = 64 * 1024;

/// Adds the keys in the files to the keys of the draft.
///
/// # Errors
/// - The environment is not a GPU workspace.
/// - A file is unreadable, has no key, or has a private key.
/// - A key is invalid.
pub(super) fn add(draft: &mut Draft, target: &Target, files: &[PathBuf]) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let api = target.api.info().name;
    if api != "gpu-workspace" {
        let message = format!("--ssh-key: {api} has no SSH keys; allowed: gpu-workspace");
        return Err(Failure::Usage(message));
    }
    let mut keys: Vec<Value> =
        draft.object["spec"]["parameters"]["sshPublicKeys"].as_array().cloned().unwrap_or_default();
    for file in files {
        let found = read(file)
            .map_err(|why| Failure::Usage(format!("--ssh-key {}: {why}", file.display())))?;
        keys.extend(found.into_iter().map(Value::from));
    }
    draft.set(FIELD, &json!(keys).to_string())
}

/// The keys in a file, one per line. Comments start with `#`.
fn read(file: &Path) -> Result<Vec<String>, String> {
    let mut text = String::new();
    let open = File::open(file).map_err(|error| error.to_string())?;
    open.take(MAX_SIZE + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_SIZE {
        return Err(format!("found more than {MAX_SIZE} bytes; allowed: public SSH keys"));
    }
    if text.contains("PRIVATE KEY") {
        return Err("found a private key; allowed: a public key. Its file ends in .pub".to_owned());
    }
    let lines = text.lines().map(str::trim);
    let keys: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if keys.is_empty() {
        Err("found no key; allowed: public SSH keys".to_owned())
    } else {
        Ok(keys)
    }
}
