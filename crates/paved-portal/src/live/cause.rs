//! A cause with its texts, and with a fingerprint for grouping.

use std::collections::BTreeMap;

use function_paved_road::diagnosis::{self, Code};
use function_paved_road::fingerprint::fingerprint;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The reason why a resource or an environment is not ready.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// The cause in one word, for example QuotaExceeded.
    #[schema(value_type = String)]
    pub(crate) code: Code,
    /// Details of the cause, for example `slot`, the part that this one waits for.
    pub(crate) params: BTreeMap<String, String>,
    /// The cause in a few words.
    pub(crate) headline: String,
    /// The remediation.
    pub(crate) remediation: String,
    /// A key for grouping. The same cause has the same key in every environment.
    pub(crate) group: String,
}

/// Why an environment is not ready.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diagnosis {
    pub(crate) cause: Cause,
    /// The slot of the part that the cause is about. Absent if it is about the whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) slot: Option<String>,
    /// RFC 3339: when the cause begins to count as a fault. Until then the environment may merely
    /// be under way. Absent if the cause counts at once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) from: Option<String>,
}

impl Cause {
    /// Creates a cause with its texts. `message` contained the cause. `names` are the names in it
    /// that belong to one environment only.
    pub(crate) fn new(cause: diagnosis::Cause, message: &str, names: &[&str]) -> Self {
        let (headline, remediation) = (cause.headline(), cause.remediation().to_owned());
        let diagnosis::Cause { code, params } = cause;
        // An unknown cause is distinguished only by its message.
        let told = if code == Code::Unknown { likeness(message, names) } else { String::new() };
        let group = fingerprint(&format!("{code:?} {params:?} {told}"));
        Self { code, params, headline, remediation, group }
    }
}

/// A message without the differences between environments: names, IDs and numbers.
fn likeness(message: &str, names: &[&str]) -> String {
    /// Shorter names may be parts of words.
    const SHORTEST: usize = 3;
    let mut names: Vec<&str> =
        names.iter().copied().filter(|name| name.len() >= SHORTEST).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let without = names.into_iter().fold(message.to_owned(), |text, name| text.replace(name, "#"));
    let is_word = |c: char| c.is_alphanumeric() || "-_+/=#".contains(c);
    let words = without.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    let fixed =
        words.map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word });
    fixed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(code: Code, message: &str, name: &str) -> String {
        Cause::new(diagnosis::Cause::new(code, []), message, &[name]).group
    }

    #[test]
    fn known_causes_are_grouped_for_any_message() {
        let one = group(Code::QuotaExceeded, "limit of 0", "ada");
        assert_eq!(one, group(Code::QuotaExceeded, "limit of 8 vCPUs", "grace"));
        assert_ne!(one, group(Code::AccessDenied, "limit of 0", "ada"));
    }

    #[test]
    fn unknown_causes_are_the_same_but_for_names_ids_and_numbers() {
        let of = |message, name| group(Code::Unknown, message, name);
        let one =
            of("cannot make ada-data: zone 3 is full, RequestID: 7ZQ1KXW3TRD0ABCD", "ada-data");
        assert_eq!(
            one,
            of("cannot make shop: zone 12 is full, RequestID: 0ABCDZQ1KXW3TRD7", "shop")
        );
        assert_ne!(one, of("cannot make shop: zone 12 is empty", "shop"));
    }
}
