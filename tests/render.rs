//! The answer to every example, in every API and state, equals its golden file.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod golden;
mod support;

use std::collections::BTreeMap;

use golden::Golden;

#[test]
fn golden_files_rebuild_every_answer() {
    let answers: BTreeMap<String, Golden> = support::examples()
        .into_iter()
        .map(|example| (example.name(), Golden::of(&support::answer(example.request()))))
        .collect();
    for (name, answer) in &answers {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let mut text = answer.to_string();
        if let Some(base) = golden::base_of(name) {
            settings.set_description(format!("differences from {base}.snap"));
            text = answer.differences_from(&answers[&base]).to_string();
        }
        settings.bind(|| insta::assert_snapshot!(name.as_str(), text));
    }
    for (name, answer) in &answers {
        assert_eq!(Golden::committed(name).to_string(), answer.to_string(), "{name}");
    }
}
