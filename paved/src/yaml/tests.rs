#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::files::Source;

fn source(text: &str) -> Source {
    Source::parse("a.yaml".into(), false, text.to_owned())
}

/// Line, column and text of the mark for a path in a document.
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
        ("kind: List\nitems:\n- x: 1\n- z: 2\n", 1, "z", 4, 6, "2"),
    ] {
        assert_eq!(
            marked(text, document, path),
            (line, column, shown.to_owned()),
            "{text}: {path}"
        );
    }
}

#[test]
fn missing_field_is_reported_at_its_parent() {
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
fn alias_is_reported_with_its_use() {
    let source = source("a: &x wrong\nb: *x\n");
    let spot = source.documents[0].value_at("b");
    assert_eq!(
        (&source.text[spot.bytes], spot.used.map(|used| &source.text[used])),
        ("wrong", Some("*x"))
    );
    assert_eq!(source.documents[0].value_at("a").used, None);
}

#[test]
fn one_broken_document_hides_no_other() {
    let source = source("a: 1\n---\nb: [\n---\nc: }\n--- \nd: 4\n");
    let lines: Vec<usize> =
        source.broken.iter().map(|broken| source.line(broken.bytes.start).0).collect();
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
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| leaves(value, &format!("{path}.{name}")))
            .collect(),
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

    /// The mark for a path is the value at that path, in block style and as JSON.
    #[test]
    fn value_positions_are_correct(value in tree()) {
        let document = json!({"spec": value});
        let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
        let block = serde_saphyr::to_string_with_options(&document, options).unwrap();
        let pretty = serde_json::to_string_pretty(&document).unwrap();
        for text in [block, pretty, document.to_string()] {
            let source = source(&format!("first: 1\n---\n{text}\n"));
            for (path, leaf) in leaves(&document, "") {
                let bytes = source.documents[1].value_at(&path).bytes;
                let shown = super::value(&source.text[bytes.clone()]).unwrap();
                prop_assert_eq!(&shown, &leaf, "{} at {:?} of {}", path, bytes, source.text);
            }
        }
    }
}

/// kubectl's result for a scalar, as a value and as a key.
struct Row<'t> {
    scalar: &'t str,
    kind: &'t str,
    value: Option<Value>,
    key: Option<Value>,
}

fn table() -> Vec<Row<'static>> {
    let rows = include_str!("../../tests/yaml-scalars.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1);
    let row = |line: &'static str| {
        let [scalar, kind, value, key] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let json = |text: &str| {
            if text == "error" || text.is_empty() {
                None
            } else {
                Some(serde_json::from_str(text).unwrap())
            }
        };
        Row { scalar, kind, value: json(value), key: json(key) }
    };
    rows.map(row).collect()
}

/// Whether two values are equal, or are the same number.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "other",
    }
}

#[test]
fn scalars_are_read_as_the_table_says() {
    for Row { scalar, kind: wanted, value, key } in table() {
        let read = super::value(&format!("- {scalar}\n")).ok();
        let told = || format!("{scalar}: {read:?}, expected {wanted} {value:?}");
        match (&read, &value) {
            (None, None) => {}
            (Some(read), Some(value)) => {
                assert!(same(&read[0], value), "{}", told());
                assert_eq!(kind(&read[0]), wanted, "{}", told());
            }
            _ => panic!("{}", told()),
        }
        let read = super::value(&format!("{scalar}: 0\n")).ok();
        let read =
            read.map(|read| Value::from(read.as_object().unwrap().keys().next().unwrap().clone()));
        assert_eq!(read, key, "{scalar} as a key");
    }
}

#[test]
fn texts_that_look_like_other_values_are_written_in_quotes() {
    for Row { scalar, .. } in table() {
        let text = crate::documents::yaml(&json!({scalar: scalar})).unwrap();
        assert_eq!(super::value(&text).unwrap(), json!({scalar: scalar}), "{text}");
    }
}

/// kubectl's output for a document. `None` if kubectl rejects it.
fn kubectl(program: &std::path::Path, body: &str) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("document.yaml");
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scalars, namespace: default}\n";
    std::fs::write(&file, format!("{head}{body}")).unwrap();
    let output = std::process::Command::new(program)
        .args(["label", "--local", "-o", "json", "read=true", "-f"])
        .arg(&file)
        .env("KUBECONFIG", "/dev/null")
        .env("HOME", folder.path())
        .output()
        .unwrap();
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Skipped if kubectl is not built.
#[test]
fn kubectl_reads_scalars_as_the_table_says() {
    let Some(program) = xtask::tools::built(&xtask::tools::KUBERNETES.kubectl) else { return };
    let rows = table();
    let (values, refused): (Vec<&Row<'_>>, Vec<&Row<'_>>) =
        rows.iter().partition(|row| row.value.is_some());
    let lines: Vec<String> = values.iter().map(|row| format!("- {}\n", row.scalar)).collect();
    let read = kubectl(&program, &format!("values:\n{}", lines.concat())).unwrap();
    let mut wrong = Vec::new();
    for (row, read) in values.iter().zip(read["values"].as_array().unwrap()) {
        if !same(read, row.value.as_ref().unwrap()) {
            wrong.push(format!("{}: kubectl returns {read}", row.scalar));
        }
    }
    let (keys, no_keys): (Vec<&Row<'_>>, Vec<&Row<'_>>) =
        rows.iter().partition(|row| row.key.is_some());
    let lines: Vec<String> = keys.iter().map(|row| format!("- {}: 0\n", row.scalar)).collect();
    let read = kubectl(&program, &format!("keys:\n{}", lines.concat())).unwrap();
    for (row, read) in keys.iter().zip(read["keys"].as_array().unwrap()) {
        let key = read.as_object().unwrap().keys().next().unwrap();
        if row.key.as_ref().unwrap() != key.as_str() {
            wrong.push(format!("{} as a key: kubectl returns {key}", row.scalar));
        }
    }
    let accepted = |body: String| kubectl(&program, &body).is_some();
    wrong.extend(
        refused
            .iter()
            .filter(|row| accepted(format!("value: {}\n", row.scalar)))
            .map(|row| format!("{}: kubectl accepts it", row.scalar)),
    );
    wrong.extend(
        no_keys
            .iter()
            .filter(|row| accepted(format!("keys:\n  {}: 0\n", row.scalar)))
            .map(|row| format!("{} as a key: kubectl accepts it", row.scalar)),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn merged_fields_replace_earlier_ones_as_with_kubectl() {
    for (text, merged) in [
        ("b: &b {x: 1}\nm: {x: 2, <<: *b}\n", 1),
        ("b: &b {x: 1}\nm: {<<: *b, x: 2}\n", 2),
        ("b: &b {x: 1}\nc: &c {x: 3}\nm: {<<: [*b, *c]}\n", 1),
    ] {
        assert_eq!(super::value(text).unwrap()["m"]["x"], merged, "{text}");
    }
    assert!(super::value("<<: 3").is_err());
}

#[test]
fn documents_made_of_aliases_are_rejected() {
    let bomb: Vec<String> =
        (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)).collect();
    let broken = documents(&format!("a0: &a0 [x, y, z]\n{}", bomb.concat())).remove(0).unwrap_err();
    assert!(broken.message.contains("too many aliases"), "{}", broken.message);
    assert!(super::value("a: &a [*a]").is_err());
}

#[test]
fn json_objects_in_a_row_are_documents() {
    let text = "{\"a\": 1}\n{\"a\": \"\\ud83d\\ude00\"} {\"a\": 3}\n";
    let source = source(text);
    let values: Vec<&Value> =
        source.documents.iter().map(|document| &document.value["a"]).collect();
    assert_eq!(values, [&json!(1), &json!("\u{1f600}"), &json!(3)]);
    assert_eq!(&source.text[source.documents[2].value_at("a").bytes], "3");
    // The broken object does not hide the others.
    let broken = self::source("{\"a\": 1}\n{\"a\": 2}\n{\"a\": ]\n");
    assert_eq!((broken.documents.len(), broken.broken.len()), (2, 1));
    assert_eq!(broken.line(broken.broken[0].bytes.start).0, 3);
}

#[test]
fn typed_lists_are_taken_apart() {
    let text = "apiVersion: a/v1\nkind: PoolList\nitems:\n- {metadata: {name: x}}\n- {apiVersion: b/v1, kind: Other}\n";
    let source = source(text);
    let read: Vec<Value> = source.documents.iter().map(|document| document.value.clone()).collect();
    let bare = json!({"apiVersion": "a/v1", "kind": "Pool", "metadata": {"name": "x"}});
    assert_eq!(read, [bare, json!({"apiVersion": "b/v1", "kind": "Other"})]);
    // A kind whose name ends in `List`, but without items, is not a list.
    assert_eq!(self::source("kind: AllowList\nspec: {items: []}\n").documents.len(), 1);
}

#[test]
fn plain_values_are_quoted_as_they_are_written() {
    let source =
        source("a: 4.10\nb: [no, 0815, 12]\n\"c.d\": 987654321098765433\ne: '4.10'\nf: true\n");
    let written = source.documents[0].written(&source.text);
    let expected =
        [("a", "4.10"), ("b[0]", "no"), ("b[1]", "0815"), ("[c.d]", "987654321098765433")];
    assert_eq!(written.len(), expected.len(), "{written:?}");
    assert!(
        expected.iter().all(|(path, text)| written.get(*path).is_some_and(|found| found == text)),
        "{written:?}"
    );
}
