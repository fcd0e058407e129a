//! Names of Kubernetes objects.

pub use crossplane::names::{IN_USE, PAUSED, SLOT};

/// What Kubernetes takes for a name.
pub const A_NAME: &str = "a name with lowercase letters, digits, - and .";

/// Whether Kubernetes takes this for a name; then it can stand in a URL too.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    begins && text.len() <= 253 && text.chars().all(fits)
}
