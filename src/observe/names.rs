//! Names. In the cloud they begin with the XR's name and end with five characters of its uid.

use super::composite::Composite;
use crate::fingerprint::hash;

/// A service's rules for names.
#[derive(Clone, Copy, Debug)]
pub struct NameRule {
    /// The longest name, in characters.
    pub max: usize,
    /// Reserved words. A name must not begin with one of these …
    pub not_at_start: &'static [&'static str],
    /// … or contain one of these.
    pub nowhere: &'static [&'static str],
}

impl NameRule {
    /// Lowercase letters, digits and hyphens, beginning with a letter, at most `max` characters.
    pub const fn dns(max: usize) -> Self {
        Self { max, not_at_start: &[], nowhere: &[] }
    }
}

impl Composite {
    /// The name of this environment's resource in a cloud. It is valid under `rule`, and unique
    /// across namespaces and re-creation.
    ///
    /// If the XR's name had to be changed or cut, six characters of its hash follow. They
    /// distinguish it from other names that would be cut to the same.
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

    /// The name of a composed Kubernetes object, if it needs one: `<XR>-<slot>-<uid5>`.
    pub fn object_name(&self, slot: &str) -> String {
        format!("{}-{slot}-{}", self.name, self.uid5())
    }

    /// The name of a provider config that an environment composes. Providers write the name into a
    /// label of each resource that uses it, so it has at most 63 characters. A longer name gets a
    /// cut XR name, with six characters of its hash to distinguish it.
    pub fn config_name(&self, slot: &str) -> String {
        let whole = self.object_name(slot);
        if whole.len() <= LONGEST_LABEL {
            return whole;
        }
        let suffix = format!("{}-{slot}-{}", hash(&self.name, 6), self.uid5());
        let stem: String =
            self.name.chars().take(LONGEST_LABEL.saturating_sub(suffix.len() + 1)).collect();
        format!("{}-{suffix}", stem.trim_end_matches(['-', '.']))
    }
}

/// The longest value of a label, which is also the longest DNS label.
const LONGEST_LABEL: usize = 63;

/// A readable and predictable DNS label: the words, joined by hyphens. If they exceed 63 characters
/// or contain other characters, six characters of a hash distinguish them from similar labels.
pub fn label(words: &[&str]) -> String {
    let whole = words.join("-");
    let fit = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let clean: String = whole.chars().map(fit).collect();
    let clean = clean.trim_matches('-');
    if clean == whole && (1..=LONGEST_LABEL).contains(&whole.len()) {
        return whole;
    }
    let suffix = hash(&words.join("/"), 6);
    let stem: String = clean.chars().take(LONGEST_LABEL - suffix.len() - 1).collect();
    format!("{}-{suffix}", stem.trim_end_matches('-')).trim_start_matches('-').to_owned()
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
    if clean.starts_with(|c: char| c.is_ascii_lowercase()) {
        clean.to_owned()
    } else {
        format!("x{clean}")
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn short_label_joins_its_words() {
        assert_eq!(label(&["team-shop", "preview"]), "team-shop-preview");
        assert_eq!(label(&["1"]), "1");
    }

    #[test]
    fn long_or_invalid_labels_stay_distinct() {
        let long = "a".repeat(62);
        let one = label(&[&long, "preview"]);
        assert_eq!(one.len(), 63);
        for (one, other) in [
            (one, label(&[&long, "other"])),
            (label(&["a.b"]), label(&["a-b"])),
            (label(&["a.b"]), label(&["a_b"])),
            (label(&[""]), label(&["."])),
        ] {
            assert_ne!(one, other);
            assert!(crate::check::kubernetes::label(&one).is_ok(), "{one}");
        }
    }
}
