#![allow(clippy::unwrap_used)]
use std::fs;

use paved_client::samples::{environment, ready};

use super::*;

fn workspace(change: impl Fn(&mut Value)) -> Environment {
    let mut object = ready();
    change(&mut object);
    environment(&object)
}

#[test]
fn a_dotenv_file_has_a_line_for_each_field() {
    let one = workspace(|object| {
        object["status"]["kubeconfigSecret"] = json!({"name": "k", "key": "kubeconfig"});
        object["status"]["odd"] = json!("two\nlines");
        object["status"]["list"] = json!(["x"]);
    });
    insta::assert_snapshot!(dotenv(&[one]), @r"
    PAVED_CONNECTION=ssh developer@203.0.113.7
    PAVED_KIND=GpuDevWorkspaceClaim
    PAVED_KUBECONFIG_SECRET_KEY=kubeconfig
    PAVED_KUBECONFIG_SECRET_NAME=k
    PAVED_MACHINE=1 GPU
    PAVED_NAME=ada
    PAVED_NAMESPACE=team-vision
    PAVED_PUBLIC_IP=203.0.113.7
    ");
}

#[test]
fn several_environments_have_their_names_in_the_keys() {
    let both =
        [workspace(|_| ()), workspace(|object| object["metadata"]["name"] = json!("grace-1"))];
    let text = dotenv(&both);
    assert!(
        text.contains("PAVED_ADA__PUBLIC_IP=") && text.contains("PAVED_GRACE_1__PUBLIC_IP="),
        "{text}"
    );
    assert!(github(&both).contains("grace-1--publicIp=203.0.113.7\n"));
    assert_eq!(serde_json::from_str::<Value>(&json(&both)).unwrap()[1]["name"], "grace-1");
}

#[test]
fn names_with_fields_are_unambiguous() {
    let named = |name: &'static str, field: &'static str| {
        workspace(move |object| {
            object["metadata"]["name"] = json!(name);
            object["status"] = json!({field: "x"});
        })
    };
    let both = [named("web", "publicIp"), named("web-public", "ip")];
    for (text, keys) in [
        (dotenv(&both), ["PAVED_WEB__PUBLIC_IP=x", "PAVED_WEB_PUBLIC__IP=x"]),
        (github(&both), ["web--publicIp=x", "web-public--ip=x"]),
    ] {
        for key in keys {
            assert_eq!(text.lines().filter(|line| *line == key).count(), 1, "{key}: {text}");
        }
    }
}

#[test]
fn environments_of_one_name_differ_by_kind_and_namespace() {
    let pool = |namespace: &'static str| {
        workspace(move |object| {
            object["kind"] = json!("StockPool");
            object["metadata"]["namespace"] = json!(namespace);
        })
    };
    let kinds = [workspace(|_| ()), pool("team-vision")];
    let text = dotenv(&kinds);
    for key in ["PAVED_GPU_DEV_WORKSPACE_CLAIM_ADA__PUBLIC_IP=", "PAVED_STOCK_POOL_ADA__PUBLIC_IP="]
    {
        assert!(text.contains(key), "{key}: {text}");
    }
    assert!(github(&kinds).contains("\nStockPool-ada--publicIp="), "{}", github(&kinds));
    let places = dotenv(&[pool("a"), pool("b")]);
    assert!(
        places.contains("PAVED_A_STOCK_POOL_ADA__NAME=")
            && places.contains("PAVED_B_STOCK_POOL_ADA__NAME=")
    );
}

#[test]
fn names_with_the_same_key_are_rejected_for_env_files() {
    let file = |name: &str| Outputs { output_file: Some(name.into()), github_output: None };
    let two = [["Environment", "team", "a.b"], ["Environment", "team", "a-b"]];
    let told = tell_apart(&file("x.env"), two).unwrap_err();
    assert!(told.code() == 1 && told.to_string().contains(".json"), "{told}");
    tell_apart(&file("x.json"), two).unwrap();
    tell_apart(&Outputs::default(), two).unwrap();
    tell_apart(&file("x.env"), [["Environment", "team", "a"], ["StockPool", "team", "a"]]).unwrap();
}

#[test]
fn no_value_can_add_outputs_of_its_own() {
    let one = workspace(|object| object["status"]["odd"] = json!("a\nPAVED_END\nevil=1"));
    let text = github(&[one]);
    assert!(text.contains("odd<<PAVED_END_\na\nPAVED_END\nevil=1\nPAVED_END_\n"), "{text}");
}

#[test]
fn json_has_the_fields_as_they_are() {
    let one = workspace(|object| object["status"]["name"] = json!("other"));
    let value: Value = serde_json::from_str(&json(&[one])).unwrap();
    assert_eq!(
        (value["publicIp"].as_str(), value["name"].as_str()),
        (Some("203.0.113.7"), Some("ada"))
    );
}

#[test]
fn a_file_that_cannot_be_written_is_a_mistake_in_the_flags() {
    let outputs = Outputs { output_file: Some("/no/such/folder/x".into()), github_output: None };
    assert_eq!(write(&outputs, &[workspace(|_| ())]).unwrap_err().code(), 1);
}

#[test]
fn outputs_of_github_are_appended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "before=1\n").unwrap();
    let outputs = Outputs { output_file: None, github_output: Some(path.clone().into()) };
    write(&outputs, &[workspace(|_| ())]).unwrap();
    let text = fs::read_to_string(path).unwrap();
    assert!(
        text.starts_with("before=1\nconnection=") && text.contains("publicIp=203.0.113.7\n"),
        "{text}"
    );
}
