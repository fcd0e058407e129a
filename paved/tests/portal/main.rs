//! The portal as its clients see it, with an API server for many users.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::large_types_passed_by_value, reason = "limits are made for one portal")]

#[path = "../support/mod.rs"]
mod support;

mod api;
mod budgets;
mod described;
mod legacy_api;
mod lifecycle;
mod live;
mod security;
mod sign_in;
mod world;
