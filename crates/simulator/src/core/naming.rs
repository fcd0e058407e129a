//! Names and UIDs, deterministic as in Crossplane.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crossplane::json::text;

const MAX_NAME_LEN: usize = 63;
const HASH: usize = 12;

/// The name that Crossplane gives to an unnamed composed resource (`internal/names` of Crossplane
/// 2.3.4).
pub(super) fn child(parent: &str, uid: &str, slot: &str) -> String {
    let mut hash = hex(&format!("{uid}{slot}"));
    hash.truncate(HASH);
    let mut parent = parent.to_owned();
    if !parent.is_empty() && !parent.ends_with('-') {
        parent.push('-');
    }
    if parent.len() + HASH > MAX_NAME_LEN {
        let prefix = cut(&parent, MAX_NAME_LEN - HASH);
        parent = match prefix.strip_suffix('-') {
            Some(_) => prefix.to_owned(),
            None => format!("{}-", cut(prefix, MAX_NAME_LEN - HASH - 1)),
        };
    }
    parent + &hash
}

/// The name of a claim's XR: the claim's name and five characters. Crossplane uses random ones.
/// Here they are derived from the claim.
pub(super) fn composite(claim: &str, identity: &str) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(identity.as_bytes());
    let suffix =
        digest.iter().take(5).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
    let mut name = format!("{}-", cut(claim, MAX_NAME_LEN - 6));
    name.extend(suffix);
    name
}

/// The UID of a new object. `composition render` gives the same UID to an XR without one.
pub fn uid(object: &Value) -> String {
    let part = |path: &[&str]| text(object, path).unwrap_or_default();
    let identity = format!(
        "{}, Kind={}\0{}\0{}",
        part(&["apiVersion"]),
        part(&["kind"]),
        part(&["metadata", "namespace"]),
        part(&["metadata", "name"]),
    );
    Uuid::new_v5(&Uuid::nil(), identity.as_bytes()).to_string()
}

/// SHA-256 in hexadecimal.
pub(crate) fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The longest prefix of at most `length` bytes.
fn cut(text: &str, length: usize) -> &str {
    let end =
        (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
