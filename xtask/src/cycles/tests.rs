#![allow(clippy::unwrap_used)]

use super::*;
use crate::workspace;

fn found(files: &[(&str, &str)]) -> Vec<String> {
    circles(&files.iter().map(|(path, text)| (path.into(), (*text).to_owned())).collect()).unwrap()
}

#[test]
fn modules_have_no_cycles() {
    let root = workspace::root();
    let fixed = ["src", "paved/src", "xtask/src", "e2e/src", "demo/src"];
    let entries = fs::read_dir(root.join("crates")).unwrap();
    let others = entries.map(|entry| entry.unwrap().path().join("src"));
    let folders = fixed.iter().map(|name| root.join(name));
    for folder in folders.chain(others) {
        let circles = circles(&read(&folder).unwrap()).unwrap();
        assert!(circles.is_empty(), "{}: {circles:#?}", folder.display());
    }
}

#[test]
fn siblings_that_import_each_other_are_a_cycle() {
    let tree = "use super::{super::a as x, e::{self, F}}; fn f() { crate::b::g::<u8>(); }";
    let files = [("lib.rs", ""), ("a.rs", "use crate::b::{c, D};"), ("b.rs", ""), ("b/c.rs", tree)];
    assert_eq!(found(&files), ["a imports crate::b::c", "b::c imports super::super::a"]);
    let files = [
        ("a.rs", "use super::b;"),
        ("b.rs", "mod i { type T = crate::c::T; }"),
        ("c.rs", "use super::a;"),
    ];
    let lines = ["a imports super::b", "b::i imports crate::c::T", "c imports super::a"];
    assert_eq!(found(&files), lines);
}

#[test]
fn imports_between_parent_and_child_are_not_a_cycle() {
    let files = [
        ("a.rs", "use self::b::X; use crate::Y;"),
        ("a/b.rs", "use super::Z; use crate::{Y, a::{Z, W}};"),
    ];
    assert_eq!(found(&files), [""; 0]);
}

#[test]
fn items_for_tests_are_left_out() {
    let a = "#[cfg(test)] mod t; #[cfg(test)] mod u { use crate::b; } #[cfg(test)] use crate::{b::{X}};";
    let files = [("a.rs", a), ("a/t.rs", "use crate::b;"), ("b.rs", "use crate::a;")];
    assert_eq!(found(&files), [""; 0]);
    let files = [("a.rs", "#[cfg(test)] fn f() {} use crate::b;"), ("b.rs", "use crate::a;")];
    assert_eq!(found(&files), ["a imports crate::b", "b imports crate::a"]);
}
