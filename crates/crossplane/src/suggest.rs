//! Suggestions for unknown names.

/// An error message for an unknown name. It lists the nearest name and all known names.
pub fn names(what: &str, found: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("unknown {what} {found:?}; none exists");
    }
    let known_names = known.join(", ");
    if found.is_empty() {
        return format!("missing; allowed: {known_names}");
    }
    let nearest = crate::nearest(found, known.iter().copied());
    let hint = nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("unknown {what} {found:?}{hint}; allowed: {known_names}")
}
