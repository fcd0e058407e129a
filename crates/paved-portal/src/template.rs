//! The template for the namespaces of new environments, and Kubernetes names made from texts.

use super::identity::Person;

/// The maximum length of a namespace's name.
pub(super) const MAX_NAMESPACE_LEN: usize = 63;

/// `team-{group}`, `{user}`: text with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    text: String,
}

impl Template {
    /// Parses a template. The error describes valid templates.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let plain = text.replace("{group}", "g").replace("{user}", "u");
        if slug(&plain) == plain && !plain.is_empty() {
            return Ok(Self { text: text.to_owned() });
        }
        Err("allowed: lowercase letters, digits, hyphens, {group} and {user}, for example \
             team-{group}"
            .to_owned())
    }

    /// The user's namespaces for this template, in the order of the user's groups.
    pub(super) fn namespaces(&self, person: &Person) -> Vec<String> {
        let text = self.text.replace("{user}", &slug(person.login()));
        let mut all: Vec<String> = if text.contains("{group}") {
            person.own_groups().map(|group| text.replace("{group}", &slug(group))).collect()
        } else {
            vec![text]
        };
        all.retain(|name| {
            !name.is_empty() && name.len() <= MAX_NAMESPACE_LEN && slug(name) == *name
        });
        all.dedup();
        all
    }
}

/// Converts a text to a Kubernetes name: lowercase letters and digits, with a dash for each run of
/// other characters.
pub(super) fn slug(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars().flat_map(char::to_lowercase) {
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_template_becomes_names_of_namespaces() {
        let person = Person::for_tests("ada@acme.io", &["Vision", "ops"]);
        let names = |text: &str| Template::parse(text).unwrap().namespaces(&person);
        assert_eq!(names("team-{group}"), ["team-vision", "team-ops"]);
        assert_eq!(names("{user}"), ["ada-acme-io"]);
        assert_eq!(names("shared"), ["shared"]);
    }

    #[test]
    fn invalid_template_is_rejected() {
        for text in ["", "Team", "a_{user}", "{team}", "-{user}", "{user}-", "a/b"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_slug_is_always_a_name() {
        for (text, name) in
            [("Ada Lovelace", "ada-lovelace"), ("--a..b--", "a-b"), ("äöü", ""), ("", "")]
        {
            assert_eq!(slug(text), name);
        }
    }
}
