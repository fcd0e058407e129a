//! `paved demo`, as a user runs it from the release: without a checkout, and with the commands that
//! it prints.

#![cfg(feature = "demo")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PAVED: &str = env!("CARGO_BIN_EXE_paved");

/// The maximum duration of a wait.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A running demo. Dropping it ends the process.
struct Demo {
    process: Child,
    /// The lines up to the hint about Ctrl-C.
    text: Vec<String>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Demo {
    fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(PAVED);
        command.arg("demo").args(flags).env_remove("KUBECONFIG");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut text = Vec::new();
        for line in lines {
            text.push(line.unwrap());
            if text.last().unwrap().starts_with("Press Ctrl-C") {
                break;
            }
        }
        Self { process, text }
    }

    fn kubeconfig(&self) -> &str {
        self.text.iter().find_map(|line| line.strip_prefix("  export KUBECONFIG=")).unwrap()
    }

    /// The address of the portal.
    fn address(&self) -> &str {
        let (_, address) = self.text[0].split_once("http://").unwrap();
        address.split(' ').next().unwrap()
    }
}

/// Runs a command line with `paved` in front of the demo, in an empty folder.
fn shell(line: &str, kubeconfig: &str, folder: &Path) -> Output {
    let programs = Path::new(PAVED).parent().unwrap().display();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(folder).stdin(Stdio::null());
    command.env("PATH", format!("{programs}:/usr/bin:/bin")).env("KUBECONFIG", kubeconfig);
    command.output().unwrap()
}

#[test]
fn every_printed_command_works() {
    let demo = Demo::start(&["--pace", "0.02"]);
    let folder = tempfile::tempdir().unwrap();
    let commands: Vec<&str> =
        demo.text.iter().filter_map(|line| line.strip_prefix("  paved ")).collect();
    assert_eq!(commands.len(), 5, "{:#?}", demo.text);
    let mut outputs = String::new();
    for command in commands {
        let output = shell(&format!("paved {command}"), demo.kubeconfig(), folder.path());
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "paved {command}: {text}");
        outputs.push_str(&text);
    }
    for expected in ["training", "VcpuLimitExceeded", "mine is ready"] {
        assert!(outputs.contains(expected), "{expected} is missing: {outputs}");
    }
}

#[test]
fn portal_answers_and_a_signal_ends_the_demo_without_traces() {
    let mut demo = Demo::start(&["--pace", "0.02"]);
    let page = format!("http://{}/healthz", demo.address());
    let answer = Command::new("curl").args(["--fail", "--silent", &page]).output().unwrap();
    assert!(answer.status.success(), "{page}: {answer:?}");
    let kubeconfig = Path::new(demo.kubeconfig()).to_owned();
    assert!(kubeconfig.is_file());
    let pid = demo.process.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = demo.process.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < TIMEOUT, "the demo did not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
    assert!(!kubeconfig.parent().unwrap().exists());
}

#[test]
fn port_in_use_is_named_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    // The last value of a repeated flag counts, so that an image can have a default.
    let flags = ["demo", "--port", "1", "--port", &port];
    let output = Command::new(PAVED).args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!("--port: {port} is in use; allowed: a free port, or no --port");
    assert!(error.contains(&expected), "{error}");
}
