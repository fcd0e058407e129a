//! The runtime image: one static binary and nothing else, written as `docker save` writes an image.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Architecture;

const DESCRIPTION: &str = "Crossplane composition function: self-service environments from small claims";

/// Whom the function runs as, where Crossplane does not say otherwise.
const USER: &str = "65532:65532";

/// gRPC, and metrics.
const PORTS: [&str; 2] = ["9443/tcp", "8080/tcp"];

/// No file has a time of its own, or no two images of the same binary would be the same.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// An image with the binary as its entry point. It writes no file and opens no connection: a root that is read-only will
/// do, and there are no certificates of authorities in it.
pub fn of(binary: &[u8], architecture: Architecture, version: &str) -> Result<Vec<u8>> {
    let layer = tar(&[("function", 0o755, binary)])?;
    let packed = gzip(&layer)?;
    let config = serde_json::to_vec(&config(architecture, version, &sha256(&layer)))?;
    let (config_name, layer_name) =
        (format!("{}.json", sha256(&config)), format!("{}.tar.gz", sha256(&packed)));
    let manifest = json!([{"Config": config_name, "RepoTags": null, "Layers": [layer_name]}]);
    tar(&[
        ("manifest.json", 0o644, &serde_json::to_vec(&manifest)?),
        (&config_name, 0o644, &config),
        (&layer_name, 0o644, &packed),
    ])
}

fn config(architecture: Architecture, version: &str, layer: &str) -> Value {
    let ports: serde_json::Map<String, Value> =
        PORTS.iter().map(|port| ((*port).to_owned(), json!({}))).collect();
    json!({
        "architecture": architecture.name(),
        "os": "linux",
        "created": EPOCH,
        "config": {
            "User": USER,
            "WorkingDir": "/",
            "Entrypoint": ["/function"],
            "ExposedPorts": ports,
            "Labels": {
                "org.opencontainers.image.title": "function-paved-road",
                "org.opencontainers.image.description": DESCRIPTION,
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.version": version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": EPOCH, "created_by": "cargo xtask package"}],
    })
}

/// A tar file of root's, without times.
pub fn tar(files: &[(&str, u32, &[u8])]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, mode, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_mode(*mode);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, *content)?;
    }
    Ok(tar.into_inner()?)
}

/// Compressed, without a name and a time.
pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(content)?;
    Ok(gzip.finish()?)
}

/// A digest in hexadecimal digits.
pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
