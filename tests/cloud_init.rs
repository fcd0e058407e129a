//! A workspace's user data, as cloud-init, the shell and a YAML parser read it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use function_paved_road::apis::gpu_workspace::cloud_init::{CloudInit, LIMIT, USER, render};
use function_paved_road::catalog::opencv::{self, RELEASES};
use proptest::prelude::*;
use serde_json::Value;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7KM58AClFcbN7U0e72APmJ/P3Dht8svq9h9D41j7Hs ada@example.org";

fn rendered(keys: &[&str], opencv: &str) -> String {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let opencv = opencv::requirement(opencv).unwrap();
    render(&CloudInit { ssh_public_keys: &keys, opencv: &opencv }).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The content of one of the written files.
fn written<'a>(config: &'a Value, path: &str) -> &'a str {
    let files = config["write_files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == path).expect(path);
    file["content"].as_str().unwrap()
}

/// Runs a program on files. If it is not installed, prints this and returns `None`. CI installs
/// both Debian packages.
fn run(program: &str, arguments: &[&str], files: &[&Path]) -> Option<Output> {
    let output = Command::new(program).args(arguments).args(files).output();
    if output.is_err() {
        eprintln!("SKIPPED: {program} is not installed (Debian: apt-get install {program})");
        assert!(std::env::var_os("CI").is_none(), "{program} has to be installed in CI");
    }
    output.ok()
}

fn assert_content(output: &Output) {
    let text = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn user_data_is_accepted_by_cloud_init() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("user-data");
    for (keys, opencv) in [(&[][..], "4.8.0"), (&[KEY, KEY], "4.4.0"), (&[KEY], "5.0.0")] {
        fs::write(&file, rendered(keys, opencv)).unwrap();
        if let Some(output) = run("cloud-init", &["schema", "--config-file"], &[&file]) {
            assert_content(&output);
        }
    }
}

#[test]
fn the_shell_scripts_are_clean() {
    let folder = tempfile::tempdir().unwrap();
    let config = parsed(&rendered(&[KEY], "4.8.0"));
    for path in ["/opt/paved/setup.sh", "/etc/profile.d/paved.sh"] {
        let file = folder.path().join(Path::new(path).file_name().unwrap());
        fs::write(&file, written(&config, path)).unwrap();
        if let Some(output) = run("shellcheck", &["--severity=style"], &[&file]) {
            assert_content(&output);
        }
    }
}

#[test]
fn the_owner_logs_in_with_the_keys_and_the_image_keeps_its_own_user() {
    let config =
        parsed(&rendered(&[KEY, "ssh-rsa AAAA \"quoted\" \\ back: #no comment ☂ 🦀"], "4.8.0"));
    let users = config["users"].as_array().unwrap();
    assert_eq!(users[0], "default");
    assert_eq!(users[1]["name"], USER);
    assert_eq!(users[1]["lock_passwd"], true);
    assert_eq!(users[1]["ssh_authorized_keys"][0], KEY);
    assert_eq!(
        users[1]["ssh_authorized_keys"][1],
        "ssh-rsa AAAA \"quoted\" \\ back: #no comment ☂ 🦀"
    );
    assert_eq!(users.len(), 2);
}

#[test]
fn setup_runs_without_a_key() {
    let config = parsed(&rendered(&[], "4.8.0"));
    assert!(config["users"][1].get("ssh_authorized_keys").is_none());
    assert_eq!(config["runcmd"][0][4], "paved-setup.service");
}

#[test]
fn exactly_one_opencv_is_installed_with_the_numpy_that_fits() {
    for release in RELEASES {
        let config = parsed(&rendered(&[], release.version));
        let needs = written(&config, "/opt/paved/requirements.txt");
        let lines: Vec<_> = needs.lines().filter(|line| !line.starts_with('#')).collect();
        let opencv = format!("opencv-contrib-python-headless=={}.*", release.version);
        assert_eq!(lines, [opencv.as_str(), release.numpy]);
        let python = needs.lines().next().and_then(|line| line.strip_prefix("# python<="));
        assert_eq!(python, release.newest_python);
    }
}

#[test]
fn success_is_marked_last_and_only_then() {
    let config = parsed(&rendered(&[], "4.8.0"));
    let setup = written(&config, "/opt/paved/setup.sh");
    assert_eq!(setup.trim_end().lines().last(), Some("touch \"$state/ready\""));
    assert_eq!(setup.matches("touch").count(), 1);
    let service = written(&config, "/etc/systemd/system/paved-setup.service");
    assert!(service.contains("ConditionPathExists=!/var/lib/paved/ready"));
}

#[test]
fn files_arrive_as_in_the_repository() {
    let config = parsed(&rendered(&[], "4.8.0"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/apis/gpu_workspace/cloud_init");
    for (path, name) in [
        ("/opt/paved/setup.sh", "setup.sh"),
        ("/etc/profile.d/paved.sh", "profile.sh"),
        ("/etc/systemd/system/paved-setup.service", "setup.service"),
    ] {
        assert_eq!(written(&config, path), fs::read_to_string(folder.join(name)).unwrap());
    }
}

#[test]
fn keys_above_the_user_data_limit_are_rejected() {
    let opencv = opencv::requirement("4.8.0").unwrap();
    let keys = vec!["ssh-rsa ".to_owned() + &"A".repeat(700); 20];
    let refused = render(&CloudInit { ssh_public_keys: &keys, opencv: &opencv }).unwrap_err();
    assert_eq!(refused.found, "20 keys of 14160 bytes in all");
    assert!(refused.allowed.contains("has at most 16384 bytes"), "{refused}");
    let fewer = render(&CloudInit { ssh_public_keys: &keys[..16], opencv: &opencv }).unwrap();
    assert!(fewer.len() <= LIMIT);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Even a text that no validation would accept cannot escape its YAML scalar.
    #[test]
    fn any_key_arrives_verbatim(keys in proptest::collection::vec(any::<String>(), 0..4)) {
        let opencv = opencv::requirement("4.8.0").unwrap();
        let config = CloudInit { ssh_public_keys: &keys, opencv: &opencv };
        let text = render(&config).unwrap();
        prop_assert_eq!(&text, &render(&config).unwrap());
        prop_assert!(text.is_ascii());
        let read = parsed(&text);
        let arrived = read["users"][1]["ssh_authorized_keys"].as_array().cloned().unwrap_or_default();
        prop_assert_eq!(arrived, keys.iter().cloned().map(Value::from).collect::<Vec<_>>());
    }
}
