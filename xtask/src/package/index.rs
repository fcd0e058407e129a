//! An image for several architectures under one name: an index in an OCI image layout. It is one
//! file, which tools of registries push.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::image::{self, Image};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The layout, as a tar file. It has one index with the tag `version`.
pub fn layout(images: &[Image], version: &str) -> Result<Vec<u8>> {
    let mut blobs = Blobs::default();
    let manifests = images.iter().map(|image| blobs.image(image)).collect::<Result<Vec<_>>>()?;
    let mut index = blobs.json(INDEX, &list(&manifests))?;
    index["annotations"] = json!({"org.opencontainers.image.ref.name": version});
    let files = BTreeMap::from([
        ("index.json".to_owned(), serde_json::to_vec(&list(&[index]))?),
        ("oci-layout".to_owned(), serde_json::to_vec(&json!({"imageLayoutVersion": "1.0.0"}))?),
    ]);
    let files = files.iter().chain(&blobs.0);
    let files: Vec<_> = files.map(|(path, content)| (&**path, 0o644, &**content)).collect();
    image::tar(&files)
}

fn list(manifests: &[Value]) -> Value {
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})
}

/// The blobs: path, which contains the digest, and content.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds a blob, and returns its descriptor.
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let (digest, size) = (image::sha256(&content), content.len());
        self.0.insert(format!("blobs/sha256/{digest}"), content);
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
    }

    fn json(&mut self, media_type: &str, content: &Value) -> Result<Value> {
        Ok(self.add(media_type, serde_json::to_vec(content)?))
    }

    fn image(&mut self, image: &Image) -> Result<Value> {
        let config = self.add(CONFIG, image.config.clone());
        let layer = self.add(LAYER, image.layer.clone());
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        let mut descriptor = self.json(MANIFEST, &manifest)?;
        descriptor["platform"] = json!({"architecture": image.architecture.name(), "os": "linux"});
        Ok(descriptor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use super::*;
    use crate::package::Architecture;
    use crate::package::image::{Contents, Effort};

    const ARCHITECTURES: [Architecture; 2] = [Architecture::Amd64, Architecture::Arm64];

    fn made(binary: &[u8]) -> Vec<u8> {
        let files: &[(&str, u32, &[u8])] = &[("program", 0o755, binary)];
        let contents = Contents {
            title: "t",
            description: "d",
            files,
            entry_point: &["/program"],
            ports: &[],
        };
        let image =
            |architecture| Image::new(&contents, architecture, "v1.2.3", Effort::Quick).unwrap();
        layout(&ARCHITECTURES.map(image), "v1.2.3").unwrap()
    }

    fn files(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), content)
        };
        tar::Archive::new(tar).entries().unwrap().map(read).collect()
    }

    /// The blob of a descriptor. Fails if its digest or size is wrong.
    fn at<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let blob = &files[&format!("blobs/sha256/{digest}")];
        assert_eq!(
            (image::sha256(blob).as_str(), json!(blob.len())),
            (digest, descriptor["size"].clone())
        );
        blob
    }

    fn json_at(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Value {
        serde_json::from_slice(at(files, descriptor)).unwrap()
    }

    #[test]
    fn one_index_leads_to_an_image_for_each_architecture() {
        let files = files(&made(b"binary"));
        let layout: Value = serde_json::from_slice(&files["oci-layout"]).unwrap();
        assert_eq!(layout, json!({"imageLayoutVersion": "1.0.0"}));
        let top: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let [index] = top["manifests"].as_array().unwrap().as_slice() else { panic!("{top}") };
        assert_eq!(index["annotations"]["org.opencontainers.image.ref.name"], "v1.2.3");
        let index = json_at(&files, index);
        let manifests = index["manifests"].as_array().unwrap();
        assert_eq!(manifests.len(), ARCHITECTURES.len());
        for (descriptor, architecture) in manifests.iter().zip(ARCHITECTURES) {
            assert_eq!(
                descriptor["platform"],
                json!({"architecture": architecture.name(), "os": "linux"})
            );
            let manifest = json_at(&files, descriptor);
            assert_eq!(json_at(&files, &manifest["config"])["architecture"], architecture.name());
            assert!(
                at(&files, &manifest["layers"][0]).starts_with(&[0x1f, 0x8b]),
                "it is compressed"
            );
        }
    }

    #[test]
    fn the_same_binaries_give_the_same_layout() {
        assert_eq!(made(b"one"), made(b"one"));
        assert_ne!(made(b"one"), made(b"two"));
    }
}
