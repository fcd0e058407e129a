#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn source(text: &str) -> Source {
    Source::parse(Text { file: "a.yaml".into(), found: false, content: text.to_owned() })
}

/// Line, column and text of what is marked for a path of a document.
fn marked(text: &str, document: usize, path: &str) -> (usize, usize, String) {
    let source = source(text);
    let Spot { bytes, .. } = source.documents[document].value_at(path);
    (source.line(bytes.start).0, source.column(bytes.start), source.text[bytes].to_owned())
}

#[test]
fn a_value_is_found_in_every_style() {
    for (text, document, path, line, column, shown) in [
        ("a:\n  b: 1\n", 0, "a.b", 2, 6, "1"),
        ("a:\n  b: 1\n", 0, "a", 1, 1, "a"),
        ("a: {b: [1, \"two\"]}", 0, "a.b[1]", 1, 12, "\"two\""),
        ("{\"a\":\n\t{\"b\": null, \"c\": 'x'}}", 0, "a.c", 2, 19, "'x'"),
        ("x: 1\n---\na: 1\n---\n# why\nb:\n- c: é\n  d: ü\n", 2, "b[0].d", 8, 6, "ü"),
        ("a: |\n  text\n  more\nb: 1\n", 0, "b", 4, 4, "1"),
        ("a: &x [1, two]\nb: *x\n", 0, "b[1]", 1, 11, "two"),
        ("base: &b {k: v}\nm:\n  <<: *b\n", 0, "m.k", 1, 14, "v"),
        ("a:\n  we.ird key: 7\n  we: 8\n", 0, "a[we.ird key]", 2, 15, "7"),
        ("a:\n  we.ird: 7\n  we: {ird: 8}\n", 0, "a.we.ird", 2, 11, "7"),
        ("a: \"one\n  two\"\n", 0, "a", 1, 4, "\"one"),
        ("a:\nb: 1\n", 0, "a", 1, 1, "a"),
        ("kind: List\nitems:\n- x: 1\n- y: 2\n", 1, "y", 4, 6, "2"),
    ] {
        assert_eq!(marked(text, document, path), (line, column, shown.to_owned()), "{text}: {path}");
    }
}

#[test]
fn what_is_missing_is_told_at_its_parent() {
    for (text, path, line, column, shown) in [
        ("a:\n  b: 1\n", "a.c", 1, 1, "a"),
        ("# why\nx: 1\na: 1\n", "c.d", 2, 1, "x"),
        ("a:\n- b: 1\n", "a[0].c", 2, 3, "b"),
        ("a: [1]\n", "a[4]", 1, 1, "a"),
        ("a: [{}]\n", "a[0].b", 1, 5, "{"),
    ] {
        let (found_line, found_column, found) = marked(text, 0, path);
        assert_eq!(
            (found_line, found_column, found.chars().next()),
            (line, column, shown.chars().next()),
            "{text}: {path}"
        );
    }
}

#[test]
fn an_alias_is_told_where_it_is_used_too() {
    let source = source("a: &x wrong\nb: *x\n");
    let spot = source.documents[0].value_at("b");
    assert_eq!((&source.text[spot.bytes], spot.used.map(|used| &source.text[used])), ("wrong", Some("*x")));
    assert_eq!(source.documents[0].value_at("a").used, None);
}

#[test]
fn one_broken_document_hides_no_other() {
    let source = source("a: 1\n---\nb: [\n---\nc: }\n--- \nd: 4\n");
    let lines: Vec<usize> = source.broken.iter().map(|broken| source.line(broken.bytes.start).0).collect();
    assert_eq!((source.documents.len(), lines), (2, vec![3, 5]));
    let spot = source.documents[1].value_at("d");
    assert_eq!(source.line(spot.bytes.start).0, 7);
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|number| json!(number)),
        "[ -~é]{0,12}".prop_map(|text| json!(text)),
        any::<bool>().prop_map(|flag| json!(flag)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,4}", inner, 1..4).prop_map(|map| json!(map)),
        ]
    })
}

/// The paths of all plain values.
fn leaves(value: &Value, path: &str) -> Vec<(String, Value)> {
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| leaves(value, &format!("{path}.{name}"))).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, value)| leaves(value, &format!("{path}[{index}]")))
            .collect(),
        plain => vec![(path.trim_start_matches('.').to_owned(), plain.clone())],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What is marked for a path is the value that stands there, in block style and as JSON.
    #[test]
    fn every_value_is_where_it_is_said_to_be(value in tree()) {
        let document = json!({"spec": value});
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        let block = serde_saphyr::to_string_with_options(&document, options).unwrap();
        let pretty = serde_json::to_string_pretty(&document).unwrap();
        for text in [block, pretty, document.to_string()] {
            let source = source(&format!("first: 1\n---\n{text}\n"));
            for (path, leaf) in leaves(&document, "") {
                let bytes = source.documents[1].value_at(&path).bytes;
                let shown: Value = serde_saphyr::from_str(&source.text[bytes.clone()]).unwrap();
                prop_assert_eq!(&shown, &leaf, "{} at {:?} of {}", path, bytes, source.text);
            }
        }
    }
}
