//! The leaf of the workspace: helpers that every crate may use.

pub mod json;
pub mod secrets;
pub mod suggest;
pub mod text;

/// The name nearest to `wanted`, if any is near: equal but for case, or at most a third of its letters away.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes time and memory in proportion to the length, and no name of ours is longer.
    const LONGEST: usize = 100;
    if wanted.len() > LONGEST {
        return None;
    }
    let lower = wanted.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let (distance, name) = names.into_iter().map(|name| (distance(name), name)).min()?;
    (distance <= wanted.chars().count().max(3) / 3).then_some(name)
}
