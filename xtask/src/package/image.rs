//! Images: a static binary and its files, in one layer.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Architecture;

/// The default user and group of programs.
const USER: &str = "65532:65532";

/// All files have the same time, so that equal binaries give equal images.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// The contents of an image, and its program.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// The name.
    pub title: &'a str,
    /// A description in one sentence.
    pub description: &'a str,
    /// Paths without the leading slash, modes and contents.
    pub files: &'a [(&'a str, u32, &'a [u8])],
    /// The program, and its first arguments.
    pub entry_point: &'a [&'a str],
    /// Ports that the program listens on, for example `8080/tcp`.
    pub ports: &'a [&'a str],
}

/// An image for one architecture, without a shell.
pub struct Image {
    /// The architecture.
    pub architecture: Architecture,
    /// The configuration, as JSON.
    pub config: Vec<u8>,
    /// The layer: a compressed tar file.
    pub layer: Vec<u8>,
}

impl Image {
    /// Packs the contents.
    pub fn new(
        contents: &Contents<'_>,
        architecture: Architecture,
        version: &str,
        effort: Effort,
    ) -> Result<Self> {
        let layer = tar(contents.files)?;
        let config = config(contents, architecture, version, &sha256(&layer));
        Ok(Self {
            architecture,
            config: serde_json::to_vec(&config)?,
            layer: gzip(&layer, effort)?,
        })
    }

    /// The image in the format of `docker save`.
    pub fn saved(&self) -> Result<Vec<u8>> {
        let config = format!("{}.json", sha256(&self.config));
        let layer = format!("{}.tar.gz", sha256(&self.layer));
        let manifest = json!([{"Config": config, "RepoTags": null, "Layers": [layer]}]);
        tar(&[
            ("manifest.json", 0o644, &serde_json::to_vec(&manifest)?),
            (&config, 0o644, &self.config),
            (&layer, 0o644, &self.layer),
        ])
    }
}

fn config(
    contents: &Contents<'_>,
    architecture: Architecture,
    version: &str,
    layer: &str,
) -> Value {
    let ports: serde_json::Map<String, Value> =
        contents.ports.iter().map(|port| ((*port).to_owned(), json!({}))).collect();
    json!({
        "architecture": architecture.name(),
        "os": "linux",
        "created": EPOCH,
        "config": {
            "User": USER,
            "WorkingDir": "/",
            "Entrypoint": contents.entry_point,
            "ExposedPorts": ports,
            "Labels": {
                "org.opencontainers.image.title": contents.title,
                "org.opencontainers.image.description": contents.description,
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.version": version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": EPOCH, "created_by": "cargo xtask package"}],
    })
}

/// A tar file whose files belong to root and have no times.
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

/// The compression effort.
#[derive(Clone, Copy, Debug)]
pub enum Effort {
    /// For downloads.
    Best,
    /// For files that stay on this machine.
    Quick,
}

/// Compresses without a file name and a time.
pub fn gzip(content: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let level = match effort {
        Effort::Best => Compression::best(),
        Effort::Quick => Compression::fast(),
    };
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), level);
    gzip.write_all(content)?;
    Ok(gzip.finish()?)
}

/// A digest in hexadecimal digits.
pub fn sha256(content: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16);
    let digits = Sha256::digest(content).into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(digit).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    fn files(image: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(image).entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), content);
        }
        files
    }

    fn image(binary: &[u8], architecture: Architecture) -> Image {
        let files: &[(&str, u32, &[u8])] = &[("function", 0o755, binary)];
        let contents = Contents {
            title: "function",
            description: "A function",
            files,
            entry_point: &["/function"],
            ports: &["9443/tcp"],
        };
        Image::new(&contents, architecture, "v1.2.3", Effort::Best).unwrap()
    }

    #[test]
    fn an_image_is_one_binary_that_runs_without_rights() {
        let image = files(&image(b"binary", Architecture::Arm64).saved().unwrap());
        let manifest: Value = serde_json::from_slice(&image["manifest.json"]).unwrap();
        let config: Value =
            serde_json::from_slice(&image[manifest[0]["Config"].as_str().unwrap()]).unwrap();
        assert_eq!(config["architecture"], "arm64");
        assert_eq!(config["config"]["User"], USER);
        assert_eq!(config["config"]["Entrypoint"], json!(["/function"]));
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.version"], "v1.2.3");
        let layer = &image[manifest[0]["Layers"][0].as_str().unwrap()];
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&**layer).read_to_end(&mut unpacked).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256(&unpacked))]));
        assert_eq!(files(&unpacked), BTreeMap::from([("function".to_owned(), b"binary".to_vec())]));
    }

    #[test]
    fn the_same_binary_gives_the_same_image() {
        let image = |binary| image(binary, Architecture::Amd64).saved().unwrap();
        assert_eq!(image(b"one"), image(b"one"));
        assert_ne!(image(b"one"), image(b"two"));
    }
}
