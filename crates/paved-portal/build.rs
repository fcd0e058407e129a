//! Tells cargo the folder of the pages. The pages are built without cargo.

fn main() {
    // A missing folder would cause a rebuild each time. If it cannot be created, there are no
    // pages, which is not an error.
    let _ = std::fs::create_dir_all("../../web/dist");
    // Debug builds read the pages at runtime, and need no rebuild after a change. But rust-embed
    // then reads a folder only if it existed at build time. This path to this file leads through
    // the folder, so cargo finds no file and runs this again if the folder is missing.
    let watched = if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        "../../web/dist"
    } else {
        "../../web/dist/../../crates/paved-portal/build.rs"
    };
    println!("cargo::rerun-if-changed={watched}");
}
