//! Label selectors. No other code sends a label selector to an API server, because an empty
//! selector selects every object.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use kube::api::ListParams;

use crate::names::is_name;

/// The longest name and the longest value of a label.
const MAX_LEN: usize = 63;

/// How many characters of an invalid term an error quotes.
const QUOTED: usize = 80;

/// A label selector with at least one term, in kubectl's syntax: `team=vision,stage!=prod,gpu`,
/// `!keep`, `stage in (dev,test)`, `stage notin (prod)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    label: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    /// The label exists and has one of these values.
    In(Vec<String>),
    /// The label is missing or has another value.
    NotIn(Vec<String>),
}

/// A text that is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelector {
    /// The text has no term.
    #[error("it is empty, and would select every environment")]
    Empty,
    /// A part between two commas is blank.
    #[error("a part between commas is empty; allowed: LABEL=VALUE,LABEL=VALUE")]
    EmptyTerm,
    /// A term is invalid, or selects nearly all objects.
    #[error(
        "found {0:?}; allowed: LABEL=VALUE, LABEL!=VALUE, LABEL, !LABEL, LABEL in (VALUE,VALUE) \
         and LABEL notin (VALUE,VALUE)"
    )]
    Term(String),
}

impl Selector {
    /// The objects with all these labels.
    pub fn with(labels: &[(&str, &str)]) -> Result<Self, InvalidSelector> {
        let text: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        let terms = text.iter().map(|text| term(text)).collect::<Result<Vec<_>, _>>()?;
        if terms.is_empty() { Err(InvalidSelector::Empty) } else { Ok(Self(terms)) }
    }

    /// The parameters of a list of the selected objects.
    pub fn list_params(&self) -> ListParams {
        ListParams::default().labels(&self.to_string())
    }

    /// Whether it selects an object with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|Term { label, test }| {
            let found = labels.get(label);
            match test {
                Test::Exists => found.is_some(),
                Test::Missing => found.is_none(),
                Test::In(values) => found.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => found.is_none_or(|value| !values.contains(value)),
            }
        })
    }
}

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let terms = split(text);
        if terms.iter().all(|term| term.is_empty()) {
            return Err(InvalidSelector::Empty);
        }
        terms.into_iter().map(term).collect::<Result<Vec<_>, _>>().map(Self)
    }
}

/// The parts between the commas outside parentheses, without blanks around them.
fn split(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let parts = text.split(|letter| {
        is_inside = (is_inside || letter == '(') && letter != ')';
        letter == ',' && !is_inside
    });
    parts.map(str::trim).collect()
}

fn term(text: &str) -> Result<Term, InvalidSelector> {
    if text.is_empty() {
        return Err(InvalidSelector::EmptyTerm);
    }
    let invalid = || InvalidSelector::Term(text.chars().take(QUOTED).collect());
    let (label, condition) = read(text).ok_or_else(invalid)?;
    let label = label.trim();
    let values = match &condition {
        Test::In(values) | Test::NotIn(values) => values.as_slice(),
        Test::Exists | Test::Missing => &[],
    };
    if !is_label(label) || !values.iter().all(|value| value.is_empty() || is_value(value)) {
        return Err(invalid());
    }
    Ok(Term { label: label.to_owned(), test: condition })
}

/// The label of a term, and its test.
fn read(text: &str) -> Option<(&str, Test)> {
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(label) = text.strip_prefix('!') {
        return Some((label, Test::Missing));
    }
    if let Some((label, value)) = text.split_once("!=") {
        // Without a value, nearly every object is selected: a variable was probably not set.
        return (!value.trim().is_empty()).then(|| (label, Test::NotIn(one(value))));
    }
    if let Some((label, value)) = text.split_once('=') {
        return Some((label, Test::In(one(value.strip_prefix('=').unwrap_or(value)))));
    }
    let Some((head, values)) = text.split_once('(') else { return Some((text, Test::Exists)) };
    let values: Vec<String> =
        values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
    let (label, operator) = head.trim_end().rsplit_once(char::is_whitespace)?;
    match operator {
        _ if values.iter().any(String::is_empty) => None,
        "in" => Some((label, Test::In(values))),
        "notin" => Some((label, Test::NotIn(values))),
        _ => None,
    }
}

/// Whether a text is the name of a label, with or without a prefix: `example.org/team`.
fn is_label(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_name) && is_value(name)
}

/// Whether a text is a value of a label that is not empty.
fn is_value(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.len() <= MAX_LEN
        && bytes.iter().all(fits)
}

impl Display for Selector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, Term { label, test }) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            match test {
                Test::Exists => write!(f, "{label}")?,
                Test::Missing => write!(f, "!{label}")?,
                Test::In(values) => match values.as_slice() {
                    [value] => write!(f, "{label}={value}")?,
                    values => write!(f, "{label} in ({})", values.join(","))?,
                },
                Test::NotIn(values) => match values.as_slice() {
                    [value] => write!(f, "{label}!={value}")?,
                    values => write!(f, "{label} notin ({})", values.join(","))?,
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(text: &str) -> Result<Selector, InvalidSelector> {
        text.parse()
    }

    #[test]
    fn blank_selector_is_rejected() {
        for text in ["", " ", "\t", "\n", ",", ", ,", ",,,", " , "] {
            assert_eq!(parsed(text), Err(InvalidSelector::Empty), "{text:?}");
        }
        assert_eq!(Selector::with(&[]), Err(InvalidSelector::Empty));
    }

    #[test]
    fn blank_term_is_rejected() {
        for text in ["team=vision,", ",team=vision", "team=vision, ,stage=dev"] {
            assert_eq!(parsed(text), Err(InvalidSelector::EmptyTerm), "{text:?}");
        }
    }

    #[test]
    fn invalid_term_is_quoted_with_the_allowed_forms() {
        for text in [
            "=",
            "==",
            "!",
            "!=",
            "=vision",
            "!=prod",
            "team!=",
            "team!= ",
            "team in ()",
            "*",
            "team in (a,)",
            "team notin ()",
            "team notin (,)",
            "team in (a",
            "team a",
            "team in",
            "team (a)",
            "team=a b",
            "team=-a",
            "-team=a",
            "a/b/c=d",
            "/team=a",
            "example.org/=a",
            "team>3",
            "team=a=b",
            "téam=a",
            "team=a)",
            "(a)",
            "in (a)",
            "Example.org/team=a",
        ] {
            let error = parsed(text).unwrap_err();
            assert!(matches!(&error, InvalidSelector::Term(_)), "{text:?}: {error:?}");
            assert!(error.to_string().contains("allowed: LABEL=VALUE, "), "{error}");
        }
        for (label, value) in [("team", "a,b!=c"), ("team", "a b"), ("", "a")] {
            assert!(Selector::with(&[(label, value)]).is_err(), "{label}={value}");
        }
        let long = format!("team={}", "a".repeat(1 << 20));
        assert!(parsed(&long).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn selector_is_sent_in_kubectls_syntax() {
        for (text, sent) in [
            ("team=vision", "team=vision"),
            ("team==vision", "team=vision"),
            (" team = vision , stage != prod ", "team=vision,stage!=prod"),
            ("gpu", "gpu"),
            ("!keep", "!keep"),
            ("! keep", "!keep"),
            ("team=", "team="),
            ("example.org/team=A_b.c-1", "example.org/team=A_b.c-1"),
            ("stage in (dev, test),gpu", "stage in (dev,test),gpu"),
            ("stage in(dev)", "stage=dev"),
            ("stage notin (prod)", "stage!=prod"),
            ("stage notin (prod,live)", "stage notin (prod,live)"),
        ] {
            let selector = parsed(text).unwrap();
            assert_eq!(selector.list_params().label_selector.as_deref(), Some(sent), "{text}");
            assert_eq!(parsed(sent), Ok(selector), "{text}");
        }
        let labels = Selector::with(&[("job", "1"), ("owner", "ada")]).unwrap();
        assert_eq!(labels.to_string(), "job=1,owner=ada");
    }

    #[test]
    fn selector_selects_as_an_api_server_does() {
        let labels = [("team", "vision"), ("stage", "dev"), ("empty", "")]
            .map(|(label, value)| (label.to_owned(), value.to_owned()));
        let labels = BTreeMap::from(labels);
        for (text, selects) in [
            ("team=vision", true),
            ("team=vision,stage=prod", false),
            ("team", true),
            ("none", false),
            ("!none", true),
            ("!team", false),
            ("none!=x", true),
            ("team!=vision", false),
            ("stage in (prod,dev)", true),
            ("stage notin (prod,dev)", false),
            ("none notin (prod)", true),
            ("none in (prod)", false),
            ("empty=", true),
            ("none=", false),
        ] {
            assert_eq!(parsed(text).unwrap().selects(&labels), selects, "{text}");
        }
    }
}
