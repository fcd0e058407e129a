//! Notices typing errors in names of cloud regions.
//!
//! Clouds add regions, so an unknown name is a warning and never an error.

use function_paved_road::catalog::regions::{AWS, AZURE, Cloud, GOOGLE};
use serde_json::Value;

const CLOUDS: [Cloud; 3] = [AWS, GOOGLE, AZURE];

/// The fields of Settings with a region, and the index of their cloud.
const SETTINGS: [(&str, &str, usize); 4] = [
    ("unifiedEnvironment.region", "/unifiedEnvironment/region", 0),
    ("environment.eks.region", "/environment/eks/region", 0),
    ("environment.gke.location", "/environment/gke/location", 1),
    ("environment.aks.location", "/environment/aks/location", 2),
];

/// The fields of Settings with regions as keys, and the index of their cloud.
const KEYS: [(&str, &str, usize); 3] = [
    ("gpuWorkspace.amis", "/gpuWorkspace/amis", 0),
    ("applicationEnvironment.zones", "/applicationEnvironment/zones", 1),
    ("applicationEnvironment.subnetworks", "/applicationEnvironment/subnetworks", 1),
];

/// Warnings about unknown regions in the spec of a claim or of a composite.
pub fn in_spec(kind: &str, spec: &Value) -> Vec<String> {
    let cloud = match kind.trim_start_matches('X').trim_end_matches("Claim") {
        "GpuDevWorkspace" => 0,
        "ApplicationEnvironment" => 1,
        _ => return Vec::new(),
    };
    let region = spec["parameters"]["region"].as_str();
    region.and_then(|region| warning("spec.parameters.region", region, cloud)).into_iter().collect()
}

/// Warnings about unknown regions in Settings.
pub fn in_settings(settings: &Value) -> Vec<String> {
    let values = SETTINGS.iter().filter_map(|(path, pointer, cloud)| {
        warning(&format!("settings.{path}"), settings.pointer(pointer)?.as_str()?, *cloud)
    });
    let keys = KEYS.iter().flat_map(|(path, pointer, cloud)| {
        let regions = settings.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        regions.filter_map(move |(region, _)| warning(&format!("settings.{path}"), region, *cloud))
    });
    values.chain(keys).collect()
}

/// A warning about a region that a cloud does not have. A zone of Google Cloud counts as its
/// region.
fn warning(path: &str, name: &str, cloud: usize) -> Option<String> {
    let regions = || CLOUDS[cloud].regions();
    let cloud = CLOUDS[cloud].name;
    let region = match name.rsplit_once('-') {
        Some((region, zone)) if cloud == "Google Cloud" && zone.len() == 1 => region,
        _ => name,
    };
    if regions().any(|known| known == region) {
        return None;
    }
    let nearest = crossplane::similar(region, regions(), 1);
    let hint = nearest.first().map_or_else(String::new, |near| format!(". Did you mean {near}?"));
    Some(format!("{path}: {name:?} is not a known region of {cloud}{hint}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistyped_region_is_a_warning_with_a_suggestion() {
        for (kind, region, words) in [
            ("ApplicationEnvironment", "us-cetral1", "Google Cloud. Did you mean us-central1?"),
            ("XApplicationEnvironment", "europe-wset1", "Google Cloud. Did you mean europe-west"),
            ("GpuDevWorkspaceClaim", "us-esat-1", "AWS. Did you mean us-east-1?"),
        ] {
            let message = in_spec(kind, &json!({"parameters": {"region": region}}));
            assert_eq!(message.len(), 1, "{region}");
            let begin = format!("spec.parameters.region: {region:?} is not a known region of ");
            assert!(message[0].starts_with(&begin) && message[0].contains(words), "{message:?}");
        }
        let settings = json!({
            "unifiedEnvironment": {"region": "eu-wset-1"},
            "environment": {"eks": {"region": "eu-cnetral-1"},
                "gke": {"location": "europe-wets1-b"}, "aks": {"location": "westeurop"}},
            "applicationEnvironment": {"zones": {"us-cetral1": ["us-cetral1-a"]}},
            "gpuWorkspace": {"amis": {"us-esat-1": {}}},
        });
        let message = in_settings(&settings);
        assert_eq!(message.len(), 6, "{message:?}");
        assert!(message.iter().all(|one| one.contains("Did you mean ")), "{message:?}");
    }

    #[test]
    fn known_regions_and_zones_have_no_warning() {
        let settings = json!({
            "unifiedEnvironment": {"region": "eu-west-1"},
            "environment": {"eks": {"region": "us-gov-west-1"},
                "gke": {"location": "europe-west10-b"}, "aks": {"location": "westeurope"}},
            "applicationEnvironment": {"zones": {"us-central1": []}},
        });
        assert_eq!(in_settings(&settings), Vec::<String>::new());
        let spec = json!({"parameters": {"region": "us-central1"}});
        assert!(in_spec("ApplicationEnvironment", &spec).is_empty());
        assert!(in_spec("StockPool", &json!({"parameters": {"region": "x"}})).is_empty());
        assert!(in_spec("Environment", &json!({})).is_empty());
    }
}
