//! The portal, as its clients see it, beside an API server of many people.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::large_types_passed_by_value, reason = "limits are made for one portal")]

#[path = "../support/mod.rs"]
mod support;

mod api;
mod described;
mod lifecycle;
mod live;
mod security;
mod shapes;
mod sign_in;
mod world;
