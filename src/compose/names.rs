//! Names: in the cloud they begin with the XR's name and end in five characters of its uid.

use super::composite::{Composite, hash};

/// What a service takes as a name.
#[derive(Clone, Copy, Debug)]
pub struct NameRule {
    /// The longest name, in characters.
    pub max: usize,
    /// Words that the service keeps for itself: a name may not begin with one of these …
    pub not_at_start: &'static [&'static str],
    /// … nor hold one of these anywhere.
    pub nowhere: &'static [&'static str],
}

impl NameRule {
    /// Lower-case letters, digits and hyphens, beginning with a letter; at most `max` characters.
    pub const fn dns(max: usize) -> Self {
        Self { max, not_at_start: &[], nowhere: &[] }
    }
}

impl Composite {
    /// The name of this environment's resource in a cloud: valid under `rule`, unique across namespaces and re-creation.
    ///
    /// Where the XR's name had to be changed or cut, six characters of its hash keep it apart from others that
    /// would be cut to the same.
    pub fn cloud_name(&self, rule: NameRule) -> String {
        let clean = clean(&self.name);
        let suffix = self.uid5();
        let whole = format!("{clean}-{suffix}");
        if clean == self.name && whole.len() <= rule.max && rule.allows(&whole) {
            return whole;
        }
        let suffix = format!("{}-{suffix}", hash(&self.name, 6));
        let room = rule.max.saturating_sub(suffix.len() + 1);
        let stem: String = clean.chars().take(room).collect();
        let whole = format!("{}-{suffix}", stem.trim_end_matches('-'));
        if rule.allows(&whole) { whole } else { format!("xr-{suffix}") }
    }

    /// The name of a composed Kubernetes object, where one is needed: `<XR>-<slot>-<uid5>`.
    pub fn object_name(&self, slot: &str) -> String {
        format!("{}-{slot}-{}", self.name, self.uid5())
    }
}

impl NameRule {
    fn allows(&self, name: &str) -> bool {
        !self.not_at_start.iter().any(|word| name.starts_with(word))
            && !self.nowhere.iter().any(|word| name.contains(word))
    }
}

/// Letters, digits and single hyphens, beginning with a letter.
fn clean(name: &str) -> String {
    let mut clean = String::with_capacity(name.len());
    for character in name.chars().map(|c| c.to_ascii_lowercase()) {
        let character = if character.is_ascii_alphanumeric() { character } else { '-' };
        if !(character == '-' && (clean.is_empty() || clean.ends_with('-'))) {
            clean.push(character);
        }
    }
    let clean = clean.trim_end_matches('-');
    if clean.starts_with(|c: char| c.is_ascii_lowercase()) { clean.to_owned() } else { format!("x{clean}") }
}
