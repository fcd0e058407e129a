//! `paved`.
fn main() {}
