//! Names of Kubernetes objects.

pub use crossplane::names::{IN_USE, PAUSED, SLOT};

/// A description of valid Kubernetes names.
pub const A_NAME: &str = "a name with lowercase letters, digits, - and .";

/// Whether a text is a valid Kubernetes name. A valid name is safe in a URL.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    begins && text.len() <= 253 && text.chars().all(fits)
}
