//! The machine image of the examples does not exist. Users get advice before EC2 rejects it.

use function_paved_road::apis::gpu_workspace::PLACEHOLDER_IMAGE;
use function_proto::structs;
use function_proto::v1::RunFunctionResponse;
use serde_json::Value;

/// Advice for a setting that has the image. `field` is below `gpuWorkspace.amis`.
pub fn advice(field: &str, region: &str) -> String {
    format!(
        "gpuWorkspace.amis.{field} is {PLACEHOLDER_IMAGE}, a placeholder. Find an image with `aws \
         ssm get-parameter --region \
         {region} --name /aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id --query \
         Parameter.Value --output text`"
    )
}

/// Returns advice for each machine in a response that uses the placeholder image.
pub fn find_in_response(response: &RunFunctionResponse) -> Vec<String> {
    let resources = response.desired.iter().flat_map(|desired| desired.resources.values());
    let objects =
        resources.filter_map(|one| Some(Value::Object(structs::object(one.resource.clone()?))));
    let machines = objects.filter(|object| {
        object["kind"] == "Instance" && object["spec"]["forProvider"]["ami"] == PLACEHOLDER_IMAGE
    });
    machines
        .map(|machine| {
            let region =
                machine["spec"]["forProvider"]["region"].as_str().unwrap_or_default().to_owned();
            advice(&region, &region)
        })
        .collect()
}

/// Returns advice for each field of Settings that has the placeholder image.
pub fn find_in_settings(settings: &Value) -> Vec<String> {
    let regions = settings["gpuWorkspace"]["amis"].as_object();
    let mut all = Vec::new();
    for (region, images) in regions.into_iter().flatten() {
        let families = images["byFamily"].as_object().into_iter().flatten();
        let families =
            families.map(|(family, image)| (format!("{region}.byFamily.{family}"), image));
        let images =
            std::iter::once((format!("{region}.default"), &images["default"])).chain(families);
        let placeholders = images.filter(|(_, image)| *image == PLACEHOLDER_IMAGE);
        all.extend(placeholders.map(|(field, _)| advice(&field, region)));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_with_the_placeholder_is_named_with_its_region() {
        let settings = json!({"gpuWorkspace": {"amis": {
            "us-east-1": {"default": PLACEHOLDER_IMAGE, "byFamily": {"p3": PLACEHOLDER_IMAGE, "p3dn": "ami-00000000000000001"}},
            "eu-west-1": {"default": "ami-00000000000000001"},
        }}});
        let all = find_in_settings(&settings);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].starts_with("gpuWorkspace.amis.us-east-1.default is ami-"), "{all:?}");
        assert!(all[1].starts_with("gpuWorkspace.amis.us-east-1.byFamily.p3 is ami-"), "{all:?}");
        assert!(all[0].contains("--region us-east-1 "), "{all:?}");
        assert_eq!(find_in_settings(&json!({})), Vec::<String>::new());
    }
}
