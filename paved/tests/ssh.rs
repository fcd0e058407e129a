//! `paved ssh` and `paved connect --stdio` with the real client and server of OpenSSH, and with
//! other programs that use it.
//!
//! Each server listens on port 22 of an own address on loopback, as a workspace does.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "ssh/clients.rs"]
mod clients;
#[path = "ssh/config.rs"]
mod config;
#[path = "ssh/start.rs"]
mod start;
mod support;
#[path = "ssh/world.rs"]
mod world;
