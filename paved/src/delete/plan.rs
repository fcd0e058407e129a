//! The deleted and the kept resources of a deletion, in the question and in the result.

use function_paved_road::status::{Deleted, Kept, OnDeletion};

use paved_client::environment::Environment;

/// The effects of an environment's deletion, one sentence a line.
pub(super) fn question(environment: &Environment) -> Vec<String> {
    let Some(OnDeletion { deletes, keeps }) = &environment.on_deletion else {
        return vec![
            "The environment's resources are deleted. Its template lists the kept resources."
                .to_owned(),
        ];
    };
    let with_data: Vec<String> = deletes.iter().filter(|one| one.has_data).map(deleted).collect();
    let others = deletes.len() - with_data.len();
    let mut lines = Vec::new();
    if !with_data.is_empty() {
        lines.push(format!("Deletes, with all data: {}", with_data.join(", ")));
    }
    match (others, with_data.is_empty()) {
        (0, _) => {}
        (1, true) => lines.push("Deletes 1 resource.".to_owned()),
        (others, true) => lines.push(format!("Deletes {others} resources.")),
        (1, false) => lines.push("Deletes 1 other resource.".to_owned()),
        (others, false) => lines.push(format!("Deletes {others} other resources.")),
    }
    if !keeps.is_empty() {
        lines
            .push(format!("Kept, and billed while it exists: {}", kept(keeps, deletes).join(", ")));
    }
    if lines.is_empty() {
        lines.push("No resource has been created yet.".to_owned());
    }
    lines
}

/// The resources that a deletion has kept. `None` without kept resources, or if they are unknown.
pub(super) fn result(environment: &Environment) -> Option<String> {
    let OnDeletion { deletes, keeps } = environment.on_deletion.as_ref()?;
    let title = environment.title();
    (!keeps.is_empty()).then(|| {
        format!("{title}: kept, and billed while it exists: {}", kept(keeps, deletes).join(", "))
    })
}

fn deleted(one: &Deleted) -> String {
    called(&one.slot, &one.kind, one.name.as_deref())
}

/// A deleted resource may leave another resource, for example a snapshot.
fn kept(keeps: &[Kept], deletes: &[Deleted]) -> Vec<String> {
    let words = |one: &Kept| {
        let is_left = deletes.iter().any(|deleted| deleted.slot == one.slot);
        let of = if is_left { format!("left by {}", one.slot) } else { one.slot.clone() };
        let until = one.until.as_ref().map(|until| format!(", until {until}")).unwrap_or_default();
        format!("{}{until}", called(&of, &one.kind, one.name.as_deref()))
    };
    keeps.iter().map(words).collect()
}

fn called(slot: &str, kind: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{slot} ({kind} {name})"),
        None => format!("{slot} ({kind})"),
    }
}
