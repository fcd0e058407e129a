use serde_json::json;

use super::{disk, legacy, namespaced};
use crate::value::{Object, at, text};

#[test]
fn delayed_resources_are_listed_beside_those_that_are_asked_for() {
    for test in [legacy(), namespaced()] {
        let mut found: Vec<(String, String, Option<String>)> = Vec::new();
        test.compose(|cx| {
            cx.managed("disk", disk("here")).add()?;
            let other = cx.managed("other", disk("there")).annotate("size", "small");
            other.needs(false, "an image").add()?;
            let web = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                             "metadata": {"name": "web"}, "spec": {"region": "everywhere"}});
            cx.object("web", web)
                .resolved_from("size", "large", &[])
                .needs(false, "a key")
                .add()?;
            cx.usage("disk", "other")?;
            found.extend(cx.objects().map(line));
            Ok(())
        })
        .unwrap();
        found.sort();
        let size = |size: &str| Some(size.to_owned());
        let expected = [
            ("Deployment".to_owned(), "everywhere".to_owned(), size("large")),
            ("Disk".to_owned(), "here".to_owned(), None),
            ("Disk".to_owned(), "there".to_owned(), size("small")),
        ];
        assert_eq!(found, expected);
    }
}

/// Kind, region and size.
fn line(object: &Object) -> (String, String, Option<String>) {
    let size = text(object, &["metadata", "annotations", "paved-road.fn.crossplane.io/size"]);
    let manifest = at(object, &["spec", "forProvider", "manifest"]).and_then(|it| it.as_object());
    let inner = manifest.unwrap_or(object);
    let region = text(inner, &["spec", "region"])
        .or_else(|| text(inner, &["spec", "forProvider", "region"]));
    let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
    (owned(text(inner, &["kind"])), owned(region), size.map(str::to_owned))
}
