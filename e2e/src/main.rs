//! `e2e`: a whole control plane on this machine, and the scenarios that run on it.

fn main() {}
