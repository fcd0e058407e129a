//! Names that were meant.

/// The kinds that there are, with the nearest to the one found.
pub fn kinds(found: &str, known: &[&str]) -> String {
    let nearest = crate::nearest(found, known.iter().copied());
    let hint = nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("found {found}; known: {}{hint}", known.join(", "))
}

/// The same for anything that has a name: `what` is it.
pub fn names(what: &str, found: &str, known: &[&str]) -> String {
    if known.is_empty() {
        format!("found {what} {found:?}; there is none")
    } else {
        kinds(&format!("{found:?}"), known)
    }
}
