//! The offers of an API in the form for browsers.

use function_paved_road::apis::AnyApi;
use function_paved_road::offers::{Offer, Offered};
use function_paved_road::settings::Settings;
use serde::Serialize;
use utoipa::ToSchema;

/// The known values of a field.
#[derive(Serialize, ToSchema)]
pub(crate) struct FieldOptions {
    /// Path of the field, for example `spec.parameters.instanceType`.
    field: &'static str,
    /// Whether other values are rejected.
    closed: bool,
    /// The values, the usual one first.
    options: Vec<FieldOption>,
}

/// A value of a field.
#[derive(Serialize, ToSchema)]
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
    let offers = match settings {
        Some(settings) => api.offers(settings, None),
        None => api.offers(&Settings::default(), None),
    };
    let open = settings.is_none();
    offers.into_iter().map(|offer| FieldOptions::from_offer(offer, open)).collect()
}

impl FieldOptions {
    /// Without Settings, the offer is not known, and is `open`.
    fn from_offer(Offer { field, closed, values }: Offer, open: bool) -> Self {
        let options = values.into_iter().map(FieldOption::from).collect();
        Self { field, closed: closed && !open, options }
    }
}

impl From<Offered> for FieldOption {
    fn from(offered: Offered) -> Self {
        let Offered {
            value,
            description,
            gpu,
            gpus,
            gpu_memory_gib,
            vcpus,
            memory_gib,
            hourly_usd,
        } = offered;
        let hourly_usd = hourly_usd.map(|usd| usd.to_string());
        Self { value, description, gpu, gpus, gpu_memory_gib, vcpus, memory_gib, hourly_usd }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use function_paved_road::apis::APIS;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn offer_of_unknown_settings_is_open() {
        let api = APIS.iter().find(|api| api.info().name == "gpu-workspace").unwrap();
        let shown = |settings: Option<&Settings>| -> Value {
            serde_json::to_value(options(*api, settings)).unwrap()
        };
        let settings = Settings::default();
        let (known, unknown) = (shown(Some(&settings)), shown(None));
        let first = json!({"value": "g4dn.xlarge", "description": "1 × NVIDIA T4 (16 GiB), 4 vCPUs, 16 GiB",
            "gpu": "T4", "gpus": 1, "gpuMemoryGiB": 16, "vCPUs": 4, "memoryGiB": 16, "hourlyUSD": "0.526"});
        assert_eq!(known[0]["options"][0], first);
        assert_eq!(known[0]["options"], unknown[0]["options"]);
        assert_eq!((&known[0]["closed"], &unknown[0]["closed"]), (&json!(true), &json!(false)));
    }
}
