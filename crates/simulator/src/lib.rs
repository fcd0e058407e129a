//! Plays what stands around a composition function, offline: an API server's schema checks ([`schema`]) and admission
//! policies ([`policy`]), Crossplane core's part ([`core`]) and the providers' answers ([`provider`]).
//!
//! It knows none of the function's APIs. What core does here is what core 2.3.4 does; what `composition render` prints
//! is what the command line 2.5.0 prints with it.

pub mod core;
pub mod policy;
pub mod provider;
pub mod schema;
mod value;

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
