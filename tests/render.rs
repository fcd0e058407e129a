//! What every example becomes, in every flavour and state: the golden files read like documentation.

mod support;

#[test]
fn examples_become_these_resources() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for example in support::examples() {
            let response = support::answer(example.request());
            insta::assert_snapshot!(example.name(), support::documents(&response));
        }
    });
}
