//! Hashes of texts, for names and for comparisons.

use sha2::{Digest, Sha256};

/// Sixteen hexadecimal digits that identify a text. The text must not be secret.
pub fn fingerprint(text: &str) -> String {
    hash(text, 16)
}

/// The first `length` hexadecimal characters of a SHA-256.
pub fn hash(source: &str, length: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(length + 1);
    for byte in Sha256::digest(source.as_bytes()).iter().take(length.div_ceil(2)) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(length);
    text
}
