//! One paragraph on the failure of a wait. It has the resource with its kind and its ID in the
//! cloud, the cause, the remediation and the message.

use std::time::Duration;

use function_paved_road::diagnosis::Cause;
use function_paved_road::status::ResourceStatus;

use crate::environment::{Blocker, spell};

/// The paragraph on a blocker that has lasted for `time`.
pub(super) fn paragraph(blocker: &Blocker, time: Duration) -> String {
    let time = spell(time);
    let (head, cause, message) = match blocker {
        Blocker::Part(part) => {
            let head = format!("has failed: {} was refused for {time}", name(part));
            (head, part.cause.as_ref(), part.message.as_deref().unwrap_or_default())
        }
        Blocker::Whole(cause, message) => {
            (format!("has not changed for {time}"), Some(cause), message.as_str())
        }
        Blocker::Uncomposed(cause) => (format!("has not changed for {time}"), Some(cause), ""),
    };
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentences =
        [
            Some(cause.map_or_else(
                || format!("{head}."),
                |cause| format!("{head}: {}.", cause.headline()),
            )),
            cause.map(Cause::remediation).map(str::to_owned),
            (!message.is_empty()).then(|| format!("Message: {}.", message.trim_end_matches('.'))),
            Some(
                "Creation continues automatically after the cause is fixed. Then wait again."
                    .to_owned(),
            ),
        ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A resource by its slot, kind and ID.
fn name(part: &ResourceStatus) -> String {
    let id = part.external_name.as_deref().or(part.name.as_deref());
    let id = id.map(|id| format!(", {id}")).unwrap_or_default();
    format!("{} ({}{id})", part.slot, part.kind)
}

#[cfg(test)]
mod tests {
    use function_paved_road::diagnosis::Code;

    use super::*;

    #[test]
    fn paragraph_has_part_cause_remediation_and_message() {
        let part = ResourceStatus {
            slot: "instance".to_owned(),
            kind: "Instance".to_owned(),
            external_name: Some("i-0abc".to_owned()),
            message: Some("VcpuLimitExceeded:\n none left.".to_owned()),
            cause: Some(Cause::new(Code::QuotaExceeded, [("provider", "AWS"), ("quota", "vCPUs")])),
            ..ResourceStatus::default()
        };
        let told = paragraph(&Blocker::Part(part), Duration::from_mins(3));
        let begin = "has failed: instance (Instance, i-0abc) was refused for 3m: AWS quota exceeded: vCPUs. \
                     Choose a smaller size";
        assert!(told.starts_with(begin), "{told}");
        assert!(
            told.contains(" Message: VcpuLimitExceeded: none left. Creation continues"),
            "{told}"
        );
    }
}
