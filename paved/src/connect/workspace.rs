//! A GPU workspace: opens a shell on the machine when it is prepared.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use paved_client::environment::spell;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::shell::{become_it, quote, quoted};
use super::{Target, ssm_exit_code};
use crate::Console;
use crate::cli::Connect;
use crate::failure::Failure;

/// The user on the machine. cloud-init creates it with the SSH keys of the claim.
const USER: &str = "developer";

/// The folder of cloud-init's result: the file `ready` after the installation, or `failed` with the
/// reason.
const STATE: &str = "/var/lib/paved";

/// Connects by ssh or by SSM. The function made this choice in the status, because it knows keys,
/// networks and addresses.
pub(super) async fn connect(
    target: &Target,
    args: &Connect,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let line = target.field("connection").ok_or_else(|| target.missing("connection"))?;
    let id = target.field("instanceId").or_else(|| target.part("instance"));
    let id = id.ok_or_else(|| target.missing("instanceId"))?;
    let v6 = target.field("ipv6Address").filter(|address| line.ends_with(&format!("@{address}")));
    let address = v6.or_else(|| target.field("publicIp"));
    let address = address.filter(|_| line.starts_with("ssh ") && !args.ssm);
    let region = target.spec("parameters/region").unwrap_or("us-east-1");
    if address.is_some_and(|address| address.parse::<IpAddr>().is_err()) {
        return Err(target.missing("valid publicIp"));
    }
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_word(id) || !is_word(region) {
        return Err(target.missing("valid instanceId and region"));
    }
    let way = match address {
        Some(address) => Way::Ssh { id, address },
        None => Way::Ssm { id, region },
    };
    // A shell needs a terminal. Without a terminal, ssh would warn about `-t`.
    let terminal = console.terminal.is_some() && console.answer.is_some();
    if args.print {
        let bare = (!args.command.is_empty()).then(|| quoted(&args.command));
        writeln!(console.out, "{}", quoted(&way.command(bare.as_deref(), terminal)))?;
        return Ok(());
    }
    // With --unprepared, a user may connect in another way, for example through a ProxyJump.
    if let Some(address) = address.filter(|_| !args.unprepared) {
        reach(target, address, target.left()).await?;
    }
    let title = target.environment.title();
    let remote = remote(args, target.left());
    writeln!(console.err, "{title}: {}", quoted(&way.command(None, terminal)))?;
    if let (Way::Ssm { .. }, Some(script), false) = (&way, &remote, args.command.is_empty()) {
        if !terminal {
            let mark = ssm_exit_code::mark();
            let words = way.command(Some(&ssm_exit_code::marked(script, &mark)), terminal);
            return Err(ssm_exit_code::run(&words, way.hint(), &mark, &title, console).await);
        }
        writeln!(
            console.err,
            "note: on a terminal, SSM does not report the exit code of the \
             command"
        )?;
    }
    Err(become_it(&way.command(remote.as_deref(), terminal), way.hint(), console))
}

/// The connection to a machine.
enum Way<'t> {
    Ssh { id: &'t str, address: &'t str },
    Ssm { id: &'t str, region: &'t str },
}

impl Way<'_> {
    /// The command that connects, for a remote command or a shell. `terminal` says whether the
    /// caller has a terminal.
    fn command(&self, remote: Option<&str>, terminal: bool) -> Vec<String> {
        match self {
            // ssh stores the machine's key under the instance ID. Addresses are reassigned to other
            // machines, and IDs are not.
            Self::Ssh { id, address } => {
                let login = format!("{USER}@{address}");
                let mut words =
                    vec!["ssh".to_owned(), "-o".to_owned(), format!("HostKeyAlias={id}")];
                words.extend(remote.filter(|_| terminal).map(|_| "-t".to_owned()));
                words.push(login);
                words.extend(remote.map(str::to_owned));
                words
            }
            Self::Ssm { id, region } => {
                let mut words: Vec<String> =
                    ["aws", "ssm", "start-session", "--target", id, "--region", region]
                        .map(str::to_owned)
                        .into();
                if let Some(remote) = remote {
                    // Not `sudo -i`, because it passes the words to another shell, which would
                    // expand them first.
                    let script = quote(&format!("cd; {remote}"));
                    let as_user = format!("sudo -Hu {USER} env SHELL=/bin/bash sh -lc {script}");
                    let parameters = serde_json::json!({"command": [as_user]}).to_string();
                    let document = "AWS-StartInteractiveCommand".to_owned();
                    words.extend([
                        "--document-name".to_owned(),
                        document,
                        "--parameters".to_owned(),
                        parameters,
                    ]);
                }
                words
            }
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Ssh { .. } => "install the OpenSSH client",
            Self::Ssm { .. } => "install the AWS CLI and its Session Manager plugin",
        }
    }
}

/// The remote command: a shell or the caller's command. It waits for cloud-init unless --unprepared
/// is set.
fn remote(args: &Connect, longest: Duration) -> Option<String> {
    let command = (!args.command.is_empty()).then(|| quoted(&args.command));
    match (command, args.unprepared) {
        (command, true) => command,
        (command, false) => Some(prepared(STATE, longest, command.as_deref())),
    }
}

/// A script that waits until the workspace is prepared. After a failed setup, a shell opens and
/// shows the reason, but a command fails.
fn prepared(state: &str, longest: Duration, command: Option<&str>) -> String {
    let (after, failed) = match command {
        Some(command) => (command.to_owned(), "exit 4"),
        None => (r#"exec "${SHELL:-/bin/bash}" -l"#.to_owned(), "break"),
    };
    let late = if command.is_some() { "exit 5" } else { "break" };
    let longest = longest.as_secs();
    format!(
        "n=0; while [ ! -e {state}/ready ]; do \
         if [ -e {state}/failed ]; then echo 'the setup of this workspace failed:' >&2; cat {state}/failed >&2; {failed}; fi; \
         if [ $n = 0 ]; then echo 'this workspace is still being set up; see /var/log/user-data.log' >&2; fi; \
         if [ $n -ge {longest} ]; then echo 'the setup is not finished' >&2; {late}; fi; \
         n=$((n+2)); sleep 2; done; {after}"
    )
}

/// Waits until port 22 accepts connections. A new machine runs for a while before it accepts a
/// login.
async fn reach(target: &Target, address: &str, longest: Duration) -> Result<(), Failure> {
    const ATTEMPT: Duration = Duration::from_secs(5);
    let begin = Instant::now();
    loop {
        let failed = match timeout(ATTEMPT, TcpStream::connect((address, 22))).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if begin.elapsed() >= longest {
            return Err(Failure::TimedOut(format!(
                "{}: {address} port 22 did not respond within {}: {failed}. Check that \
                 spec.parameters.allowedCidrs has your address, or use --ssm. With --unprepared, \
                 paved does not wait",
                target.environment.title(),
                spell(longest)
            )));
        }
        sleep(Duration::from_secs(2)).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::process::Command;

    use super::*;

    fn play(
        state: &tempfile::TempDir,
        longest: u64,
        command: Option<&str>,
    ) -> (Option<i32>, String) {
        let script =
            prepared(state.path().to_str().unwrap(), Duration::from_secs(longest), command);
        let output =
            Command::new("sh").args(["-c", &script]).env("SHELL", "/bin/true").output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    #[test]
    fn the_command_runs_once_cloud_init_is_done() {
        let state = tempfile::tempdir().unwrap();
        let ready = state.path().join("ready");
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            fs::write(ready, "").unwrap();
        });
        let (code, told) = play(&state, 60, Some("echo here"));
        later.join().unwrap();
        assert_eq!(code, Some(0));
        assert!(told.contains("still being set up") && told.starts_with("here"), "{told}");
    }

    #[test]
    fn failed_setup_is_reported_and_a_shell_still_opens() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("failed"), "installing OpenCV (exit code 1)").unwrap();
        let (code, told) = play(&state, 60, Some("echo here"));
        assert_eq!(code, Some(4));
        assert!(told.contains("installing OpenCV") && !told.contains("here"), "{told}");
        assert_eq!(play(&state, 60, None).0, Some(0));
    }

    #[test]
    fn wait_for_the_workspace_is_limited() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(play(&state, 0, Some("echo here")).0, Some(5));
        assert_eq!(play(&state, 0, None).0, Some(0));
    }

    #[test]
    fn ssh_requests_a_terminal_only_from_a_terminal() {
        let way = Way::Ssh { id: "i-1", address: "203.0.113.7" };
        let words = |remote, terminal| quoted(&way.command(remote, terminal));
        assert_eq!(words(Some("ls"), true), "ssh -o HostKeyAlias=i-1 -t developer@203.0.113.7 ls");
        assert_eq!(words(Some("ls"), false), "ssh -o HostKeyAlias=i-1 developer@203.0.113.7 ls");
        assert_eq!(words(None, true), "ssh -o HostKeyAlias=i-1 developer@203.0.113.7");
    }

    #[test]
    fn ssm_passes_the_command_through_every_shell() {
        let way = Way::Ssm { id: "i-1", region: "eu-west-1" };
        let words = way.command(Some("echo 'a b'"), true);
        assert_eq!(
            words[..7],
            ["aws", "ssm", "start-session", "--target", "i-1", "--region", "eu-west-1"]
        );
        let parameters: serde_json::Value = serde_json::from_str(&words[10]).unwrap();
        let command = parameters["command"][0].as_str().unwrap();
        assert_eq!(
            command,
            r"sudo -Hu developer env SHELL=/bin/bash sh -lc 'cd; echo '\''a b'\'''"
        );
    }

    #[test]
    fn a_wait_over_ssm_ends_when_its_time_is_over() {
        // The agent passes the command to a shell, and sudo passes its words on unchanged.
        let folder = tempfile::tempdir().unwrap();
        let sudo = folder.path().join("sudo");
        std::fs::write(&sudo, "#!/bin/sh\nshift 2\nexec \"$@\"\n").unwrap();
        std::fs::set_permissions(&sudo, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let script = prepared("/nowhere", Duration::ZERO, Some("echo never"));
        let words = Way::Ssm { id: "i-1", region: "eu-west-1" }.command(Some(&script), false);
        let parameters: serde_json::Value = serde_json::from_str(&words[10]).unwrap();
        let command = parameters["command"][0].as_str().unwrap();
        let ran = std::process::Command::new("sh")
            .args(["-c", command])
            .env("PATH", path)
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stderr.clone()).unwrap();
        assert!(ran.status.code() == Some(5) && said.contains("still being set up"), "{ran:?}");
    }
}
