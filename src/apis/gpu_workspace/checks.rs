//! Checks of a workspace: the checks of the schema, and checks that a schema cannot express.

use ipnet::IpNet;
use serde_json::Value;

use super::{
    DEFAULT_IMAGE, DISK_GB, GpuWorkspaceSettings, KEYS, MOST_KEYS, OPENCV, Parameters, SSH,
    image_family, settings,
};
use crate::catalog::aws;
use crate::catalog::gpu::{self, Machine};
use crate::catalog::opencv;
use crate::check::{self, Fields, Refused};
use crate::compose::Composer;
use crate::error::Error;
use crate::fingerprint::fingerprint;

impl Parameters {
    /// Checks every field. Returns the machine type, and the networks for SSH if the claim names
    /// them.
    pub(super) fn check(
        &self,
        settings: &GpuWorkspaceSettings,
        cx: &Composer<'_>,
    ) -> Result<(&'static Machine, Option<Vec<IpNet>>), Error> {
        let mut fields = Fields::default();
        let machine = self.machine(settings, cx);
        if machine.is_err() && gpu::machine(&self.instance_type).is_ok() {
            settings.check_offer()?;
        }
        fields.check("spec.parameters.instanceType", machine.as_ref());
        let list = self.allowed_cidrs.as_deref();
        let cidrs =
            list.map(|list| check::cidrs("spec.parameters.allowedCidrs", list, &mut fields));
        self.check_limit(settings, &mut fields, cx)?;
        fields.check("spec.parameters.owner", check::shape(&self.owner, 128, is_owner, OWNERS));
        fields.check("spec.parameters.region", self.check_region(settings, cx));
        fields.check("spec.parameters.diskGB", self.check_disk(cx));
        self.check_keys(&mut fields, cx);
        fields.check("spec.parameters.opencvVersion", self.check_opencv(cx));
        fields.verdict(Error::InvalidSpec)?;
        let machine =
            machine.map_err(|error| Error::spec("spec.parameters.instanceType", error))?;
        Ok((machine, cidrs))
    }

    /// The machine type. Settings limit new choices, and not the types of existing machines.
    fn machine(
        &self,
        settings: &GpuWorkspaceSettings,
        cx: &Composer<'_>,
    ) -> Result<&'static Machine, Refused> {
        let chosen_before = cx.noted("instance", "instance-type") == Some(&self.instance_type);
        let machine = if chosen_before {
            gpu::machine(&self.instance_type)?
        } else {
            gpu::offered(&self.instance_type, &settings.offer().collect::<Vec<_>>())?
        };
        let family = image_family(machine).unwrap_or(DEFAULT_IMAGE);
        match cx.noted("instance", "image-family") {
            Some(image) if image != family => {
                let found = format!(
                    "\"{}\", which needs the machine image {family}; the machine runs {image}",
                    self.instance_type
                );
                let allowed = "a machine type with the same image. For another image, create a \
                               new workspace"
                    .to_owned();
                Err(Refused { found, allowed })
            }
            _ => Ok(machine),
        }
    }

    /// Checks that every network is within a network that Settings allow. A network that can
    /// already connect is not checked.
    fn check_limit(
        &self,
        settings: &GpuWorkspaceSettings,
        fields: &mut Fields,
        cx: &Composer<'_>,
    ) -> Result<(), Error> {
        let limits = settings.limits()?;
        for (index, text) in self.allowed_cidrs.iter().flatten().enumerate() {
            let Ok(cidr) = check::cidr(text) else { continue };
            if !cx.exists(&format!("{SSH}{cidr}")) {
                let path = format!("spec.parameters.allowedCidrs[{index}]");
                fields.check(path, settings::within(&cidr, &limits));
            }
        }
        Ok(())
    }

    /// The region. A new workspace needs a region with a machine image, if there is one.
    fn check_region(
        &self,
        settings: &GpuWorkspaceSettings,
        cx: &Composer<'_>,
    ) -> Result<(), Refused> {
        let regions = settings.regions();
        if !regions.is_empty() && !cx.exists("instance") && !cx.exists("security-group") {
            return check::one_of(&self.region, &regions).map(|_| ());
        }
        let region = aws::region(&self.region)?;
        let running = ["instance", "security-group"]
            .into_iter()
            .find_map(|slot| cx.running(slot, &["region"]));
        check::unchanged(region, running.and_then(Value::as_str), "create a new workspace")
    }

    fn check_disk(&self, cx: &Composer<'_>) -> Result<(), Refused> {
        check::range(self.disk_gb, DISK_GB, "GiB")?;
        check::grows(
            self.disk_gb,
            cx.running("instance", &["rootBlockDevice", "volumeSize"]),
            "GiB",
        )
    }

    /// A machine reads its keys at its first boot only, even if the API server accepts a later
    /// change.
    fn check_keys(&self, fields: &mut Fields, cx: &Composer<'_>) {
        const PATH: &str = "spec.parameters.sshPublicKeys";
        let keys = &self.ssh_public_keys;
        if fields.check(PATH, check::count(keys, MOST_KEYS)).is_none() {
            return;
        }
        for (index, key) in keys.iter().enumerate() {
            fields.check(format!("{PATH}[{index}]"), check::ssh_public_key(key));
        }
        if cx.noted("instance", KEYS).is_some_and(|noted| noted != self.keys()) {
            let found = format!("{} keys that differ from the keys of the machine", keys.len());
            let allowed = "the keys at creation. For other keys, edit ~/.ssh/authorized_keys or \
                           create a \
                 new workspace";
            fields.refuse(PATH, Refused { found, allowed: allowed.to_owned() });
        }
    }

    /// A machine reads its OpenCV release at its first boot only.
    fn check_opencv(&self, cx: &Composer<'_>) -> Result<(), Refused> {
        opencv::requirement(&self.opencv_version)?;
        let running = cx.noted("instance", OPENCV);
        check::unchanged(
            &self.opencv_version,
            running,
            "install it with pip, or create a new \
             workspace",
        )
    }

    /// A fingerprint of all keys, to record them.
    pub(super) fn keys(&self) -> String {
        fingerprint(&self.ssh_public_keys.join("\n"))
    }
}

/// The networks for SSH if the claim names none.
///
/// If the EnvironmentConfig, which may name networks, was not found, the networks that can already
/// connect stay. A missing object must not lock users out.
pub(super) fn other_cidrs(
    settings: &GpuWorkspaceSettings,
    cx: &Composer<'_>,
) -> Result<Vec<IpNet>, Error> {
    if cx.settings.config_not_found {
        return Ok(cx.slots(SSH).filter_map(|slot| slot.strip_prefix(SSH)?.parse().ok()).collect());
    }
    settings.cidrs()
}

/// The allowed names of owners, for messages.
const OWNERS: &str = "an email address or a login with letters, digits and . _ + @ -, starting \
                      with a letter or \
     digit";

fn is_owner(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+@-".contains(c))
}
