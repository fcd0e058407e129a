//! What a workspace may be: every check of the schema, and those that no schema can express.

use ipnet::IpNet;
use serde_json::Value;

use super::{DEFAULT_IMAGE, GpuWorkspaceSettings, KEYS, OPENCV, Parameters, image_family};
use crate::catalog::gpu::{self, Machine};
use crate::catalog::opencv;
use crate::check;
use crate::compose::{Composition, fingerprint};
use crate::error::Error;

impl Parameters {
    /// The machine type. What Settings offer counts for what is chosen now, not for what runs.
    pub(super) fn machine(
        &self,
        settings: &GpuWorkspaceSettings,
        cx: &Composition<'_>,
    ) -> Result<&'static Machine, Error> {
        const PATH: &str = "spec.parameters.instanceType";
        let machine = gpu::machine(&self.instance_type).map_err(|error| Error::spec(PATH, error))?;
        let chosen_before = cx.noted("instance", "instance-type") == Some(&self.instance_type);
        let offered = &settings.instance_types;
        if !chosen_before && !offered.is_empty() {
            let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
            check::one_of(&self.instance_type, &offered).map_err(|error| Error::spec(PATH, error))?;
        }
        let family = image_family(machine).unwrap_or(DEFAULT_IMAGE);
        match cx.noted("instance", "image-family") {
            Some(image) if image != family => {
                let message = format!(
                    "found \"{}\", which needs another machine image ({family}) than the one that runs ({image}); \
                     allowed: a type that takes the same image, or a new workspace",
                    self.instance_type
                );
                Err(Error::spec(PATH, message))
            }
            _ => Ok(machine),
        }
    }

    /// The networks that SSH is let in from, in canonical form, each once.
    ///
    /// Where the EnvironmentConfig that may name some cannot be found, those that are let in stay: nobody is locked out by
    /// a missing object.
    pub(super) fn cidrs(
        &self,
        settings: &GpuWorkspaceSettings,
        cx: &Composition<'_>,
    ) -> Result<Vec<IpNet>, Error> {
        if self.allowed_cidrs.is_none() && cx.settings.incomplete {
            return Ok(cx.slots("ssh-").filter_map(|slot| slot.strip_prefix("ssh-")?.parse().ok()).collect());
        }
        match &self.allowed_cidrs {
            Some(list) => check::cidrs(list).map_err(|(index, message)| {
                let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
                Error::spec(format!("spec.parameters.allowedCidrs{index}"), message)
            }),
            None => settings.cidrs(),
        }
    }

    /// Every other field, as the schema says it and beyond.
    pub(super) fn check(&self, cx: &Composition<'_>) -> Result<(), Error> {
        let wrong = |name: &str, error: check::Refused| Error::spec(format!("spec.parameters.{name}"), error);
        check::shape(&self.owner, 128, is_owner, OWNERS).map_err(|error| wrong("owner", error))?;
        check::shape(&self.region, 32, is_region, "an AWS region such as us-east-1")
            .map_err(|error| wrong("region", error))?;
        check::range(self.disk_gb, 75..=16384, "GiB").map_err(|error| wrong("diskGB", error))?;
        check::grows(self.disk_gb, cx.running("instance", &["rootBlockDevice", "volumeSize"]), "GiB")
            .map_err(|error| wrong("diskGB", error))?;
        check::count(&self.ssh_public_keys, 20).map_err(|error| wrong("sshPublicKeys", error))?;
        for (index, key) in self.ssh_public_keys.iter().enumerate() {
            check::ssh_public_key(key).map_err(|error| wrong(&format!("sshPublicKeys[{index}]"), error))?;
        }
        opencv::requirement(&self.opencv_version).map_err(|error| wrong("opencvVersion", error))?;
        self.check_first_boot(cx)
    }

    /// What a machine cannot become any more, whatever the API server let through.
    fn check_first_boot(&self, cx: &Composition<'_>) -> Result<(), Error> {
        let wrong = |name: &str, error: check::Refused| Error::spec(format!("spec.parameters.{name}"), error);
        let region =
            ["instance", "security-group"].into_iter().find_map(|slot| cx.running(slot, &["region"]));
        check::unchanged(&self.region, region.and_then(Value::as_str), "make a new workspace")
            .map_err(|error| wrong("region", error))?;
        let opencv = cx.noted("instance", OPENCV);
        check::unchanged(&self.opencv_version, opencv, "install it with pip, or make a new workspace")
            .map_err(|error| wrong("opencvVersion", error))?;
        match cx.noted("instance", KEYS) {
            Some(noted) if noted != self.keys() => {
                let found = format!("{} keys that are not those of the machine", self.ssh_public_keys.len());
                let allowed = "those that it was made with; for others, edit ~/.ssh/authorized_keys, or make a new workspace";
                Err(wrong("sshPublicKeys", check::Refused { found, allowed: allowed.to_owned() }))
            }
            _ => Ok(()),
        }
    }

    /// What stands for all keys in a note.
    pub(super) fn keys(&self) -> String {
        fingerprint(&self.ssh_public_keys.join("\n"))
    }
}

/// What an owner may be called, in words.
const OWNERS: &str = "an e-mail address or a login: letters, digits and . _ + @ -, a letter or digit first";

fn is_owner(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+@-".contains(c))
}

/// `us-east-1`, `us-gov-west-1`: an area of two to four letters, words, one digit.
fn is_region(name: &str) -> bool {
    let word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    let parts: Vec<&str> = name.split('-').collect();
    match parts.as_slice() {
        [area, words @ .., number] => {
            (2..=4).contains(&area.len())
                && word(area)
                && !words.is_empty()
                && words.iter().all(word)
                && number.len() == 1
                && number.chars().all(|c| c.is_ascii_digit())
        }
        _ => false,
    }
}
