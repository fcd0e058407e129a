//! The messages of Crossplane's protocol for functions, from the SDK's description of it.

use anyhow::{Context as _, Result};
use function_sdk_rust::proto::FILE_DESCRIPTOR_SET;
use prost::Message as _;
use prost_build::{Config, Module};
use prost_types::FileDescriptorSet;

/// The protobuf package of the protocol.
const PACKAGE: &str = "apiextensions.fn.proto.v1";

/// The protobuf package of the well-known types. The crate `prost_types` has them.
const WELL_KNOWN: &str = ".google.protobuf";

/// The path of the messages.
pub(super) const FILE: &str = "crates/function-proto/src/v1.rs";

/// The messages as Rust types, without a client or a server.
pub(super) fn messages() -> Result<String> {
    let description =
        FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).context("reading the SDK's description")?;
    let module = |package: &str| Module::from_protobuf_package_name(package);
    let files = description.file.into_iter().map(|file| (module(file.package()), file)).collect();
    // prost-build has types of its own for the well-known types, which these two calls replace.
    let mut config = Config::new();
    config.compile_well_known_types().extern_path(WELL_KNOWN, "::prost_types");
    let mut modules = config.generate(files).context("generating the messages")?;
    modules.remove(&module(PACKAGE)).with_context(|| format!("the SDK does not describe {PACKAGE}"))
}
