//! The function binary.
fn main() {}
