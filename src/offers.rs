//! Offers: the values of fields that users can choose, with their size and price. Schemas do not
//! have them, because they depend on catalogues and Settings.

use serde::Serialize;

use crate::catalog::gpu::Machine;
use crate::catalog::prices::Usd;
use crate::pricing::Pricing;

/// MiB in a GiB.
const MIB_PER_GIB: u32 = 1024;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::apis::{APIS, Flavour, sections};
    use crate::catalog::opencv;
    use crate::check::offer;
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
        assert_eq!(offer("g4dn.xlrage", &few), "g4dn.xlarge, g5.xlarge (nearest: g4dn.xlarge)");
        assert_eq!(offer("冷", &few), "g4dn.xlarge, g5.xlarge");
        let offers = offers("gpu-workspace", &json!({}), None);
        let machines = values(&offers, "instanceType");
        let machines: Vec<&str> = machines.iter().map(String::as_str).collect();
        assert_eq!(
            offer("g4dn.huge", &machines),
            "g4dn, g5, g6, g6e (xlarge, 2xlarge, 4xlarge, 8xlarge, 16xlarge) (nearest: g4dn.xlarge)"
        );
        let mixed = ["a.s", "a.m", "b.s", "c", "d.s", "e.x", "f.x", "g.x", "h.x"];
        assert_eq!(offer("冷", &mixed), "a (s, m); b, d (s); c; e, f, g, h (x)");
    }
}
