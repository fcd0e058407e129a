//! Names of Kubernetes objects: the rule for them, and the Function's name.

/// What Crossplane calls the Function when it is installed as docs/how-to/install.md says, or because a Configuration depends on it.
pub(crate) const FUNCTION: &str = "paved-road-function-paved-road";

/// What Kubernetes takes for a name.
pub(crate) const A_NAME: &str = "a name with lowercase letters, digits, - and .";

/// Whether Kubernetes takes this for a name; then it can stand in a URL too.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    begins && text.len() <= 253 && text.chars().all(fits)
}
