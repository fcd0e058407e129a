//! The known values of fields: machine types, releases and regions, from the catalogue and from
//! Settings. A schema has no such values, because they change more often.

use function_paved_road::apis::gpu_workspace::{GpuDevWorkspace, GpuWorkspaceSettings};
use function_paved_road::apis::{AnyApi, Api};
use function_paved_road::catalog::gpu::Machine;
use function_paved_road::catalog::opencv;
use function_paved_road::pricing::Pricing;
use function_paved_road::settings::Settings;
use serde::Serialize;
use utoipa::ToSchema;

/// MiB in a GiB.
const MIB_PER_GIB: u32 = 1024;

/// The known values of a field.
#[derive(Serialize, ToSchema)]
pub(crate) struct FieldOptions {
    /// Path of the field, for example `spec.parameters.instanceType`.
    field: &'static str,
    /// The values, the usual one first.
    options: Vec<FieldOption>,
}

/// A value of a field.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldOption {
    value: String,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The model of the GPUs of a machine type.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'static str>,
    /// The number of its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<u32>,
    /// The memory of one GPU in GiB.
    #[serde(rename = "gpuMemoryGiB", skip_serializing_if = "Option::is_none")]
    gpu_memory_gib: Option<u32>,
    /// The number of virtual CPUs.
    #[serde(rename = "vCPUs", skip_serializing_if = "Option::is_none")]
    vcpus: Option<u32>,
    /// The memory in GiB.
    #[serde(rename = "memoryGiB", skip_serializing_if = "Option::is_none")]
    memory_gib: Option<u32>,
    /// US dollars for an hour, in the first region of the options. Absent if the price is not known.
    #[serde(rename = "hourlyUSD", skip_serializing_if = "Option::is_none")]
    hourly_usd: Option<String>,
}

/// The options of an API. `settings` are absent if they are not known, or if the user may not create
/// the kind: Settings are shown to users with a use for them.
pub(super) fn options(api: &dyn AnyApi, settings: Option<&Settings>) -> Vec<FieldOptions> {
    if api.info().name != GpuDevWorkspace::INFO.name {
        return Vec::new();
    }
    let section = |settings: &Settings| settings.section(GpuDevWorkspace::INFO.settings).ok();
    let workspaces: GpuWorkspaceSettings = settings.and_then(section).unwrap_or_default();
    let own = settings.map(|settings| settings.common.pricing.clone());
    let pricing = own.unwrap_or_default();
    let regions = regions(&workspaces);
    let region = regions.first().map_or(GpuDevWorkspace::DEFAULT_REGION, |region| &region.value);
    let machines =
        workspaces.offer().map(|machine| FieldOption::machine(machine, &pricing, region)).collect();
    let releases = opencv::RELEASES.iter().rev();
    let releases = releases.map(|release| FieldOption::value(release.version)).collect();
    [
        ("spec.parameters.instanceType", machines),
        ("spec.parameters.opencvVersion", releases),
        ("spec.parameters.region", regions),
    ]
    .into_iter()
    .filter(|(_, options)| !options.is_empty())
    .map(|(field, options)| FieldOptions { field, options })
    .collect()
}

/// The regions with a machine image, the default region first.
fn regions(settings: &GpuWorkspaceSettings) -> Vec<FieldOption> {
    let mut regions: Vec<&str> = settings.amis.keys().map(String::as_str).collect();
    regions.sort_by_key(|region| *region != GpuDevWorkspace::DEFAULT_REGION);
    regions.into_iter().map(FieldOption::value).collect()
}

impl FieldOption {
    fn value(value: &str) -> Self {
        Self { value: value.to_owned(), ..Self::default() }
    }

    fn machine(machine: &Machine, pricing: &Pricing, region: &str) -> Self {
        Self {
            value: machine.name.to_owned(),
            description: Some(machine.line()),
            gpu: Some(machine.gpu.model),
            gpus: Some(machine.gpus),
            gpu_memory_gib: Some((machine.gpu.memory_mib + MIB_PER_GIB / 2) / MIB_PER_GIB),
            vcpus: Some(machine.vcpus),
            memory_gib: Some(machine.memory_gib),
            hourly_usd: pricing.of(machine.name, region).map(|usd| usd.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use function_paved_road::apis::{APIS, sections};
    use serde_json::{Value, json};

    use super::*;

    fn of(name: &str, settings: Option<&Settings>) -> Value {
        let api = APIS.iter().find(|api| api.info().name == name).unwrap();
        serde_json::to_value(options(*api, settings)).unwrap()
    }

    fn values(options: &Value, field: &str) -> Vec<String> {
        let field = format!("spec.parameters.{field}");
        let found = options.as_array().unwrap().iter().find(|one| one["field"] == field.as_str());
        let all = found.map(|found| found["options"].as_array().unwrap().clone());
        let value = |one: &Value| one["value"].as_str().unwrap().to_owned();
        all.unwrap_or_default().iter().map(value).collect()
    }

    #[test]
    fn machine_types_have_size_and_price() {
        let options = of("gpu-workspace", None);
        let machine = json!({"value": "g4dn.xlarge", "description": "1 × NVIDIA T4 (16 GiB), 4 vCPUs, 16 GiB",
            "gpu": "T4", "gpus": 1, "gpuMemoryGiB": 16, "vCPUs": 4, "memoryGiB": 16, "hourlyUSD": "0.526"});
        assert_eq!(options[0]["options"][0], machine);
        let machines = values(&options, "instanceType");
        assert!(machines.len() > 10 && !machines.iter().any(|name| name.starts_with("p3")));
        assert_eq!(values(&options, "opencvVersion").len(), opencv::RELEASES.len());
        assert_eq!(values(&options, "opencvVersion")[0], "5.0.0");
        assert!(values(&options, "region").is_empty(), "Settings name the regions");
    }

    #[test]
    fn settings_decide_on_offer_regions_and_prices() {
        let images = json!({"default": "ami-0123456789abcdef0"});
        let body = json!({
            "gpuWorkspace": {"instanceTypes": ["p3.2xlarge", "g5.xlarge"],
                "amis": {"eu-west-1": images, "us-east-1": images}},
            "pricing": {"overrides": [{"type": "p3.2xlarge", "usdPerHour": "2.5"}]}});
        let settings = Settings::read(body.as_object().unwrap().clone(), &sections()).unwrap();
        let options = of("gpu-workspace", Some(&settings));
        assert_eq!(values(&options, "instanceType"), ["g5.xlarge", "p3.2xlarge"]);
        assert_eq!(options[0]["options"][1]["hourlyUSD"], "2.500");
        assert_eq!(values(&options, "region"), ["us-east-1", "eu-west-1"]);
    }

    #[test]
    fn other_kinds_have_no_options() {
        assert_eq!(of("stock-pool", None), json!([]));
    }
}
