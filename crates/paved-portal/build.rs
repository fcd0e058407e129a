//! Tells cargo where the pages are, which come into being without it.

fn main() {
    // A folder that is missing would count as changed with every build. Where it cannot be made
    // there are no pages, which is no error.
    let _ = std::fs::create_dir_all("../../web/dist");
    // Debug builds read the pages when they are asked for, and need not be built again.
    let watched = if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        "../../web/dist"
    } else {
        "build.rs"
    };
    println!("cargo::rerun-if-changed={watched}");
}
