//! The messages of Crossplane's protocol for functions, `apiextensions.fn.proto.v1`.
//!
//! function-sdk-rust has the same messages, together with a gRPC server and its TLS library. This
//! crate keeps these out of programs that compose without a server, for example `paved preview`.
//! `cargo xtask generate` writes the messages from the SDK's own description of the protocol.

pub mod structs;
/// The messages of version 1.
#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated")]
#[rustfmt::skip]
pub mod v1;
