//! Names that a user may have meant.

/// Returns the name that `wanted` misspells. The two differ only in case, or in at most a third of
/// the letters.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Computing the distance takes time and memory in proportion to the length. All our names are
    // shorter.
    const MAX_LEN: usize = 100;
    if wanted.len() > MAX_LEN {
        return None;
    }
    let lower = wanted.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let (distance, name) = names.into_iter().map(|name| (distance(name), name)).min()?;
    (distance <= wanted.chars().count().max(3) / 3).then_some(name)
}

/// The names similar to `wanted`, at most `count`, the most similar one first. This is less strict
/// than [`nearest`]: a common beginning is enough.
pub fn similar<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    /// The least similarity (0 to 1) of a suggested name.
    const ALIKE: f64 = 0.75;
    /// The number of characters that are compared. The longest name of a catalogue is far shorter.
    const COMPARED: usize = 64;
    let wanted: String = wanted.chars().take(COMPARED).flat_map(char::to_lowercase).collect();
    let mut alike: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().take(count).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_name_has_a_nearest_name() {
        assert_eq!(nearest("g4dn.xlrge", ["g5.xlarge", "g4dn.xlarge"]), Some("g4dn.xlarge"));
        assert_eq!(nearest("banana", ["g5.xlarge", "g4dn.xlarge"]), None);
    }

    #[test]
    fn similar_names_ignore_case() {
        assert_eq!(similar("Smal", ["small", "medium", "large"], 2), ["small"]);
    }
}
