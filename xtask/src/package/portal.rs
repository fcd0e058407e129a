//! The portal and its demo: images of `paved` for all architectures, and their SBOMs. Both images
//! have the same files, so a registry stores them once.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    Architecture, Args,
    crates::Graph,
    image::{Contents, Image},
    index, licenses, sbom,
};

/// The name of the portal's image.
pub const NAME: &str = "paved-portal";

/// An image of `paved` that starts one of its commands.
pub struct Portal {
    /// The name of the image.
    pub name: &'static str,
    description: &'static str,
    entry_point: &'static [&'static str],
}

/// The portal.
pub const PORTAL: Portal = Portal {
    name: NAME,
    description: "The web portal of Paved Road: self-service environments without YAML",
    entry_point: &["/paved", "portal"],
};

/// The portal in front of a fake cluster. A container's loopback is not reachable from outside.
pub const DEMO: Portal = Portal {
    name: "paved-demo",
    description: "A demo of Paved Road's web portal, with a fake cluster and fake clouds",
    entry_point: &["/paved", "demo", "--address", "0.0.0.0", "--port", "8080"],
};

/// The file with trusted authorities, where programs on Linux expect it.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The crate with these certificates. The SBOM lists it.
const AUTHORITIES_FROM: &str = "webpki-root-certs";

impl Portal {
    /// Builds the image and its SBOM, and returns their files.
    pub fn write(&self, args: &Args, output: &Path) -> Result<[PathBuf; 2]> {
        let binaries = args.architectures().into_iter().map(|architecture| {
            let binary = args.program("paved", "paved", architecture)?;
            let binary =
                fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
            Ok((architecture, binary))
        });
        let binaries = binaries.collect::<Result<Vec<_>>>()?;
        // After the binaries, because their build installs the packages of the pages.
        let graph = self.graph(args)?;
        let licenses = licenses::text(args, &graph)?;
        let images = binaries
            .iter()
            .map(|(architecture, binary)| self.image(binary, &licenses, *architecture, args));
        let layout = index::layout(&images.collect::<Result<Vec<_>>>()?, &args.release)?;
        let file = output.join(format!("{}.oci.tar", self.name));
        fs::write(&file, layout).with_context(|| format!("writing {}", file.display()))?;
        Ok([file, sbom::write(args.place.root(), &graph, output)?])
    }

    /// The crates in the image.
    fn graph(&self, args: &Args) -> Result<Graph> {
        Graph::for_image(args.place.root(), self.name, &["paved", AUTHORITIES_FROM])
    }

    /// The image for one architecture. The portal writes no file. It connects to an OpenID provider,
    /// usually with a certificate of a public authority.
    fn image(
        &self,
        binary: &[u8],
        licenses: &str,
        architecture: Architecture,
        args: &Args,
    ) -> Result<Image> {
        let authorities = authorities();
        let files = [
            ("paved", 0o755, binary),
            (AUTHORITIES, 0o644, authorities.as_bytes()),
            (licenses::IN_IMAGE, 0o644, licenses.as_bytes()),
        ];
        let contents = Contents {
            title: self.name,
            description: self.description,
            files: &files,
            entry_point: self.entry_point,
            ports: &["8080/tcp"],
        };
        Image::new(&contents, architecture, &args.release, args.effort())
    }
}

/// The authorities that Mozilla trusts, as PEM.
fn authorities() -> String {
    const LINE: usize = 64;
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use serde_json::{Value, json};

    use super::*;
    use crate::workspace;

    #[test]
    fn the_image_starts_the_portal_and_trusts_public_authorities() {
        let args = Args { debug: true, ..Args::default() };
        let image = PORTAL.image(b"binary", "texts", Architecture::Amd64, &args).unwrap();
        let config: Value = serde_json::from_slice(&image.config).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/paved", "portal"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        let layer = flate2::read::GzDecoder::new(&*image.layer);
        let mut archive = tar::Archive::new(layer);
        let paths = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap())
        });
        let paths: Vec<_> = paths.collect();
        let expected = [("paved", 0o755), (AUTHORITIES, 0o644), (licenses::IN_IMAGE, 0o644)];
        let expected = expected.map(|(path, mode)| (path.to_owned(), mode));
        assert_eq!(paths, expected, "and no shell");
    }

    /// `paved` accepts the arguments, and a user's flags after them.
    #[test]
    fn demo_is_the_same_layer_with_arguments_that_paved_accepts() {
        let args = Args { debug: true, ..Args::default() };
        let image =
            |portal: &Portal| portal.image(b"binary", "texts", Architecture::Amd64, &args).unwrap();
        assert_eq!(image(&DEMO).layer, image(&PORTAL).layer);
        let config: Value = serde_json::from_slice(&image(&DEMO).config).unwrap();
        let arguments = config["config"]["Entrypoint"].as_array().unwrap().iter();
        let arguments = arguments.map(|one| one.as_str().unwrap()).chain(["--port", "9000"]);
        let matches = paved::command().try_get_matches_from(arguments).unwrap();
        let (command, flags) = matches.subcommand().unwrap();
        assert_eq!((command, flags.get_one("port")), ("demo", Some(&9000_u16)));
    }

    #[test]
    fn authorities_are_certificates_as_pem() {
        let text = authorities();
        let blocks: Vec<_> = text.split_terminator("-----END CERTIFICATE-----\n").collect();
        assert_eq!(blocks.len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        for (block, certificate) in blocks.iter().zip(webpki_root_certs::TLS_SERVER_ROOT_CERTS) {
            let lines: Vec<_> =
                block.strip_prefix("-----BEGIN CERTIFICATE-----\n").unwrap().lines().collect();
            assert!(lines.iter().all(|line| line.len() <= 64));
            assert_eq!(STANDARD.decode(lines.concat()).unwrap(), certificate.as_ref());
        }
    }

    #[test]
    fn bill_names_the_content_of_the_image() {
        let folder = tempfile::tempdir().unwrap();
        let graph = PORTAL.graph(&Args::default()).unwrap();
        let file = sbom::write(workspace::root(), &graph, folder.path()).unwrap();
        let mut text = String::new();
        fs::File::open(file).unwrap().read_to_string(&mut text).unwrap();
        let bill: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(bill["metadata"]["component"]["name"], NAME);
        let names = bill["components"].as_array().unwrap().iter().map(|one| one["name"].clone());
        let names: Vec<_> = names.collect();
        assert!(
            ["paved", AUTHORITIES_FROM, "kube", "react"]
                .iter()
                .all(|name| names.contains(&json!(name))),
            "{names:?}"
        );
    }
}
