//! Offers: the values of fields that users can choose, with their size and price. Schemas do not
//! have them, because they depend on catalogues and Settings.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::catalog::gpu::Machine;
use crate::catalog::prices::Usd;
use crate::check::suggestion;
use crate::pricing::Pricing;

/// MiB in a GiB.
const MIB_PER_GIB: u32 = 1024;

/// The longest offer that a message lists by full names.
const SHORT: usize = 8;

/// The offer for a field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Path of the field, for example `spec.parameters.instanceType`.
    pub field: &'static str,
    /// Whether other values are rejected.
    pub closed: bool,
    /// The values, the usual one first.
    pub values: Vec<Offered>,
}

/// A value of a field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offered {
    /// The value in a claim.
    pub value: String,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model of the GPUs of a machine type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<&'static str>,
    /// The number of its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The memory of one GPU in GiB.
    #[serde(rename = "gpuMemoryGiB", skip_serializing_if = "Option::is_none")]
    pub gpu_memory_gib: Option<u32>,
    /// The number of virtual CPUs.
    #[serde(rename = "vCPUs", skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
    /// The memory in GiB.
    #[serde(rename = "memoryGiB", skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<u32>,
    /// US dollars for an hour. Absent if the price is not known.
    #[serde(rename = "hourlyUSD", skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<Usd>,
}

/// The platform team's prices, and the region to price in.
#[derive(Clone, Copy, Debug)]
pub struct Prices<'p> {
    /// Prices of Settings.
    pub pricing: &'p Pricing,
    /// The region, if the user names one.
    pub region: Option<&'p str>,
}

impl Prices<'_> {
    /// The price of one piece of a type for an hour, in the region, otherwise in `usual`.
    pub fn of(self, name: &str, usual: &str) -> Option<Usd> {
        self.pricing.of(name, self.region.unwrap_or(usual))
    }
}

impl Offered {
    /// A value without a description.
    pub fn plain(value: &str) -> Self {
        Self { value: value.to_owned(), ..Self::default() }
    }

    /// A value with a description.
    pub fn described(value: &str, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..Self::plain(value) }
    }

    /// A machine type with a GPU.
    pub fn machine(machine: &Machine, hourly_usd: Option<Usd>) -> Self {
        Self {
            gpu: Some(machine.gpu.model),
            gpus: Some(machine.gpus),
            gpu_memory_gib: Some((machine.gpu.memory_mib + MIB_PER_GIB / 2) / MIB_PER_GIB),
            vcpus: Some(machine.vcpus),
            memory_gib: Some(machine.memory_gib),
            hourly_usd,
            ..Self::described(machine.name, machine.line())
        }
    }
}

/// The values of an offer and the nearest one, for the message about `found`. Families with the
/// same sizes share their list: `g4dn, g5 (xlarge, 2xlarge)`.
pub fn allowed(found: &str, values: &[&str]) -> String {
    if values.len() <= SHORT {
        return suggestion(found, values);
    }
    let nearest = crossplane::similar(found, values.iter().copied(), 1);
    let hint = nearest.first().map_or_else(String::new, |name| format!(" (nearest: {name})"));
    format!("{}{hint}", by_family(values))
}

/// The values, with one list of sizes for all families that have the same sizes.
fn by_family(values: &[&str]) -> String {
    let family =
        |value: &str| value.split_once('.').map_or(value.len(), |(family, _)| family.len());
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for value in values {
        let name = &value[..family(value)];
        if !seen.insert(name) {
            continue;
        }
        let of = values.iter().filter(|value| &value[..family(value)] == name);
        let sizes: Vec<&str> = of.filter_map(|value| Some(value.split_once('.')?.1)).collect();
        match groups.iter_mut().find(|(_, known)| *known == sizes) {
            Some((families, _)) => families.push(name),
            None => groups.push((vec![name], sizes)),
        }
    }
    let shown = groups.iter().map(|(families, sizes)| match sizes.as_slice() {
        [] => families.join(", "),
        sizes => format!("{} ({})", families.join(", "), sizes.join(", ")),
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::apis::{APIS, Flavour, sections};
    use crate::catalog::opencv;
    use crate::manifests;
    use crate::settings::Settings;

    fn offers(name: &str, settings: &Value, region: Option<&str>) -> Vec<Offer> {
        let settings = Settings::read(settings.as_object().unwrap().clone(), &sections()).unwrap();
        let api = APIS.iter().find(|api| api.info().name == name).unwrap();
        api.offers(&settings, region)
    }

    fn values(offers: &[Offer], field: &str) -> Vec<String> {
        let found = offers.iter().find(|offer| offer.field.ends_with(field));
        let values = found.into_iter().flat_map(|offer| &offer.values);
        values.map(|offered| offered.value.clone()).collect()
    }

    #[test]
    fn machine_types_have_size_and_price() {
        let offers = offers("gpu-workspace", &json!({}), None);
        let machine = json!({"value": "g4dn.xlarge", "description": "1 × NVIDIA T4 (16 GiB), 4 vCPUs, 16 GiB",
            "gpu": "T4", "gpus": 1, "gpuMemoryGiB": 16, "vCPUs": 4, "memoryGiB": 16, "hourlyUSD": "0.526"});
        assert_eq!(serde_json::to_value(&offers[0].values[0]).unwrap(), machine);
        let machines = values(&offers, "instanceType");
        assert!(machines.len() > 10 && !machines.iter().any(|name| name.starts_with("p3")));
        assert_eq!(values(&offers, "opencvVersion").len(), opencv::RELEASES.len());
        assert_eq!(values(&offers, "opencvVersion")[0], "5.0.0");
        assert!(values(&offers, "region").is_empty(), "Settings name the regions");
    }

    #[test]
    fn settings_decide_on_offer_regions_and_prices() {
        let images = json!({"default": "ami-0123456789abcdef0"});
        let settings = json!({
            "gpuWorkspace": {"instanceTypes": ["p3.2xlarge", "g5.xlarge"],
                "amis": {"eu-west-1": images, "us-east-1": images}},
            "pricing": {"overrides": [{"type": "p3.2xlarge", "usdPerHour": "2.5"}]}});
        let found = offers("gpu-workspace", &settings, None);
        assert_eq!(values(&found, "instanceType"), ["g5.xlarge", "p3.2xlarge"]);
        let price = |offers: &[Offer], index: usize| {
            offers[0].values[index].hourly_usd.map(|usd| usd.to_string())
        };
        assert_eq!(price(&found, 1).as_deref(), Some("2.500"));
        assert_eq!(values(&found, "region"), ["us-east-1", "eu-west-1"]);
        let elsewhere = offers("gpu-workspace", &settings, Some("eu-west-1"));
        assert_ne!(price(&found, 0), price(&elsewhere, 0));
    }

    #[test]
    fn sizes_name_their_machines_and_prices() {
        let settings =
            json!({"applicationEnvironment": {"machineTypes": {"large": "n2-standard-8"}}});
        let found = offers("application-environment", &settings, None);
        let sizes = &found.iter().find(|offer| offer.field.ends_with("nodeSize")).unwrap().values;
        let words: Vec<_> = sizes.iter().map(|one| one.description.as_deref().unwrap()).collect();
        assert!(
            words[0].starts_with("e2-small") && words[2].starts_with("n2-standard-8"),
            "{words:?}"
        );
        assert!(sizes[0].hourly_usd.is_some());
    }

    /// A form and `paved init` take values from offers, so every value has to be valid.
    #[test]
    fn offered_values_are_fields_of_the_schema() {
        for api in APIS {
            let xrd = manifests::xrd(*api, Flavour::Claims, "platform.acme.io");
            let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            for offer in api.offers(&Settings::default(), None) {
                let pointer = format!("/properties/{}", offer.field.replace('.', "/properties/"));
                let field = schema.pointer(&pointer).unwrap_or_else(|| panic!("{}", offer.field));
                let Some(names) = field["enum"].as_array() else { continue };
                let is_known = |offered: &Offered| names.contains(&json!(offered.value));
                assert!(offer.values.iter().all(is_known), "{}", offer.field);
                assert!(offer.closed, "{}", offer.field);
            }
        }
    }

    #[test]
    fn long_offer_is_listed_by_families() {
        let few = ["g4dn.xlarge", "g5.xlarge"];
        assert_eq!(allowed("g4dn.xlrage", &few), "g4dn.xlarge, g5.xlarge (nearest: g4dn.xlarge)");
        assert_eq!(allowed("冷", &few), "g4dn.xlarge, g5.xlarge");
        let offers = offers("gpu-workspace", &json!({}), None);
        let machines = values(&offers, "instanceType");
        let machines: Vec<&str> = machines.iter().map(String::as_str).collect();
        assert_eq!(
            allowed("g4dn.huge", &machines),
            "g4dn, g5, g6, g6e (xlarge, 2xlarge, 4xlarge, 8xlarge, 16xlarge) (nearest: g4dn.xlarge)"
        );
        let mixed = ["a.s", "a.m", "b.s", "c", "d.s", "e.x", "f.x", "g.x", "h.x"];
        assert_eq!(allowed("冷", &mixed), "a (s, m); b, d (s); c; e, f, g, h (x)");
    }
}
