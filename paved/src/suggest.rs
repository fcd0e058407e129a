//! Names that were meant.

/// The kinds that can be previewed, with the nearest to the one found.
pub(crate) fn kinds(found: &str, known: &[&str]) -> String {
    let nearest = simulator::nearest(found, known.iter().copied());
    let hint = nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("found {found}; known: {}{hint}", known.join(", "))
}
