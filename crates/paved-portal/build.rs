//! Tells cargo the folder of the pages. The pages are built without cargo.

fn main() {
    // A missing folder would cause a rebuild each time. If it cannot be created, there are no
    // pages, which is not an error.
    let _ = std::fs::create_dir_all("../../web/dist");
    // Debug builds read the pages at runtime, and need no rebuild.
    let watched = if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        "../../web/dist"
    } else {
        "build.rs"
    };
    println!("cargo::rerun-if-changed={watched}");
}
