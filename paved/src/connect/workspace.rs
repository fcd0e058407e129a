//! A GPU workspace: opens a shell on the machine when it is prepared.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use paved_client::environment::{Environment, spell};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::shell::{become_it, quote, quoted};
use super::{Target, ssm_exit_code};
use crate::Console;
use crate::cli::{Connect, Printed};
use crate::failure::Failure;
use crate::port_forward::PortForward;
use crate::ssh_host::url_of_editor;
use crate::style::command;

/// The user on the machine. cloud-init creates it with the SSH keys of the claim.
pub(crate) const USER: &str = "developer";

/// The folder of cloud-init's result: the file `ready` after the installation, or `failed` with the
/// reason.
const STATE: &str = "/var/lib/paved";

/// Connects by ssh or by SSM.
pub(super) async fn connect(
    target: &Target,
    args: &Connect,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let machine = Machine::of(target, args.ssm)?;
    // A shell needs a terminal. Without a terminal, ssh would warn about `-t`.
    let terminal = console.terminal.is_some() && console.answer.is_some();
    let words = match &args.forward[..] {
        [] => None,
        forwards => Some(machine.forward(forwards)?),
    };
    if let Some(printed) = args.print {
        let bare = (!args.command.is_empty()).then(|| quoted(&args.command));
        let line = match printed {
            Printed::Vscode => {
                let environment = &target.environment;
                let home = format!("/home/{USER}");
                url_of_editor(&environment.name, &environment.namespace, &home)
            }
            _ => quoted(&words.unwrap_or_else(|| machine.command(bare.as_deref(), terminal))),
        };
        writeln!(console.out, "{line}")?;
        if printed == Printed::Vscode {
            let note = "the link works after `paved ssh config` in the current context";
            writeln!(console.err, "note: {note}")?;
        }
        return machine.print_missing(console);
    }
    machine.print_missing(console)?;
    // With --unprepared, a user may connect in another way, for example through a ProxyJump.
    if let Some(address) = machine.address().filter(|_| !args.unprepared) {
        reach(target, address, console).await?;
    }
    let title = target.environment.title();
    if let Some(words) = words {
        writeln!(console.err, "{title}: {}", command(&quoted(&words)))?;
        writeln!(console.err, "forwarding; press Ctrl-C to stop")?;
        return Err(become_it(&words, machine.hint(), console));
    }
    let remote = remote(args, target.left());
    writeln!(console.err, "{title}: {}", command(&quoted(&machine.command(None, terminal))))?;
    if let (None, Some(script), false) = (machine.address(), &remote, args.command.is_empty()) {
        if !terminal {
            let mark = ssm_exit_code::mark();
            let words = machine.command(Some(&ssm_exit_code::marked(script, &mark)), terminal);
            return Err(ssm_exit_code::run(&words, machine.hint(), &mark, &title, console).await);
        }
        writeln!(
            console.err,
            "note: on a terminal, SSM does not report the exit code of the \
             command"
        )?;
    }
    Err(become_it(&machine.command(remote.as_deref(), terminal), machine.hint(), console))
}

/// The ID of a workspace's instance, if its status has a valid one.
pub(crate) fn instance_id(object: &DynamicObject) -> Option<String> {
    let environment = Environment::from_object(object);
    let id = environment.fields.get("instanceId").and_then(Value::as_str);
    let of_slot = || {
        let part = environment.parts.iter().find(|part| part.slot == "instance")?;
        part.external_name.as_deref()
    };
    id.or_else(of_slot).filter(|id| is_word(id)).map(str::to_owned)
}

/// Whether a text is safe as an argument of ssh and aws.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// A machine and the way to it.
pub(super) struct Machine {
    id: String,
    region: String,
    /// The address for SSH. `None` for Session Manager.
    address: Option<IpAddr>,
    /// The missing parts of SSH over the network.
    missing: Vec<String>,
}

impl Machine {
    /// The machine of a workspace. The function made the choice between SSH and SSM in the status,
    /// because it knows keys, networks and addresses.
    pub(super) fn of(target: &Target, is_ssm: bool) -> Result<Self, Failure> {
        let line = target.field("connection").ok_or_else(|| target.missing("connection"))?;
        let has_id = target.field("instanceId").or_else(|| target.part("instance")).is_some();
        let id = instance_id(&target.object);
        let region = target.spec("parameters/region").unwrap_or("us-east-1");
        let v6 =
            target.field("ipv6Address").filter(|address| line.ends_with(&format!("@{address}")));
        let address = v6.or_else(|| target.field("publicIp"));
        let address = address.filter(|_| line.starts_with("ssh ") && !is_ssm);
        let address = address
            .map(|address| address.parse().map_err(|_| target.missing("valid publicIp")))
            .transpose()?;
        let Some(id) = id.filter(|_| is_word(region)) else {
            let what = if has_id { "valid instanceId and region" } else { "instanceId" };
            return Err(target.missing(what));
        };
        let missing = if line.starts_with("ssh ") { Vec::new() } else { missing(target) };
        Ok(Self { id, region: region.to_owned(), address, missing })
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Prints the missing parts of SSH over the network, and the next step.
    pub(super) fn print_missing(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let mut notes = self.missing.iter();
        Ok(notes.try_for_each(|note| writeln!(console.err, "note: {note}"))?)
    }

    /// The command that connects, for a remote command or a shell. `terminal` says whether the
    /// caller has a terminal.
    fn command(&self, remote: Option<&str>, terminal: bool) -> Vec<String> {
        let Some(address) = self.address else { return self.ssm(remote) };
        let mut words = self.ssh();
        words.extend(remote.filter(|_| terminal).map(|_| "-t".to_owned()));
        words.push(format!("{USER}@{address}"));
        words.extend(remote.map(str::to_owned));
        words
    }

    /// The begin of a command of ssh. ssh stores the machine's key under the instance ID. Addresses
    /// are reassigned to other machines, and IDs are not.
    fn ssh(&self) -> Vec<String> {
        vec!["ssh".to_owned(), "-o".to_owned(), format!("HostKeyAlias={}", self.id)]
    }

    /// The command of Session Manager.
    fn ssm(&self, remote: Option<&str>) -> Vec<String> {
        let Some(remote) = remote else { return self.document(None) };
        // Not `sudo -i`, because it passes the words to another shell, which would expand them
        // first.
        let script = quote(&format!("cd; {remote}"));
        let as_user = format!("sudo -Hu {USER} env SHELL=/bin/bash sh -lc {script}");
        let parameters = serde_json::json!({"command": [as_user]}).to_string();
        self.document(Some(("AWS-StartInteractiveCommand", parameters)))
    }

    /// A session of Session Manager that carries SSH.
    pub(super) fn session(&self) -> Vec<String> {
        self.document(Some(("AWS-StartSSHSession", "portNumber=22".to_owned())))
    }

    /// The command that forwards ports, without a shell.
    fn forward(&self, forwards: &[PortForward]) -> Result<Vec<String>, Failure> {
        let Some(address) = self.address else {
            let [forward] = forwards else {
                return Err(Failure::Usage(format!(
                    "found {} flags -L; allowed: 1, because Session Manager forwards one port in a \
                     session. Run `paved connect` for each port",
                    forwards.len()
                )));
            };
            return Ok(self.document(Some(forward.document())));
        };
        let mut words = self.ssh();
        words.extend(["-N", "-o", "ExitOnForwardFailure=yes"].map(str::to_owned));
        words.extend(forwards.iter().flat_map(|one| ["-L".to_owned(), one.option()]));
        words.push(format!("{USER}@{address}"));
        Ok(words)
    }

    fn document(&self, document: Option<(&str, String)>) -> Vec<String> {
        let mut words: Vec<String> =
            ["aws", "ssm", "start-session", "--target", &self.id, "--region", &self.region]
                .map(str::to_owned)
                .into();
        if let Some((name, parameters)) = document {
            words.extend(["--document-name", name, "--parameters", &parameters].map(str::to_owned));
        }
        words
    }

    pub(super) fn hint(&self) -> &'static str {
        match self.address {
            Some(_) => "install the OpenSSH client",
            None => "install the AWS CLI and its Session Manager plugin",
        }
    }
}

/// The missing parts of SSH over the network: a key, a network, or both.
fn missing(target: &Target) -> Vec<String> {
    let keys = target.object.data.pointer("/spec/parameters/sshPublicKeys");
    let has_key = keys.and_then(Value::as_array).is_some_and(|keys| !keys.is_empty());
    let rule = |slot: &str| slot.strip_prefix("ssh-").is_some_and(|cidr| cidr.contains('/'));
    let has_network = target.environment.parts.iter().any(|part| rule(&part.slot));
    let mut missing = Vec::new();
    if !has_key {
        missing.push(
            "spec.parameters.sshPublicKeys has no key, so SSH accepts no login. Create workspaces \
             with a key: paved init gpu-workspace NAME --ssh-key ~/.ssh/id_ed25519.pub"
                .to_owned(),
        );
    }
    if !has_network {
        missing.push(
            "no network may connect by SSH, so Session Manager is used. Add your address to \
             spec.parameters.allowedCidrs for a direct connection"
                .to_owned(),
        );
    }
    missing
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

/// Waits until port 22 accepts connections, and returns the first one. A new machine runs for a
/// while before it accepts a login.
pub(super) async fn reach(
    target: &Target,
    address: IpAddr,
    console: &mut Console<'_>,
) -> Result<TcpStream, Failure> {
    const ATTEMPT: Duration = Duration::from_secs(5);
    /// The wait after which a note appears.
    const SILENCE: Duration = Duration::from_secs(10);
    const ADVICE: &str = "Check that spec.parameters.allowedCidrs has your address, or use --ssm, \
                          which `paved ssh config` has too";
    let (begin, longest) = (Instant::now(), target.left());
    let title = target.environment.title();
    let mut is_noted = false;
    loop {
        let failed = match timeout(ATTEMPT, TcpStream::connect((address, 22))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if begin.elapsed() >= longest {
            return Err(Failure::TimedOut(format!(
                "{title}: {address} port 22 did not respond within {}: {failed}. {ADVICE}. With \
                 --unprepared, paved does not wait",
                spell(longest)
            )));
        }
        if !is_noted && begin.elapsed() >= SILENCE {
            is_noted = true;
            writeln!(
                console.err,
                "note: {title}: {address} port 22 does not respond yet: {failed}. {ADVICE}"
            )?;
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

    fn machine(address: Option<&str>) -> Machine {
        Machine {
            id: "i-1".to_owned(),
            region: "eu-west-1".to_owned(),
            address: address.map(|address| address.parse().unwrap()),
            missing: Vec::new(),
        }
    }

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
        let machine = machine(Some("203.0.113.7"));
        let words = |remote, terminal| quoted(&machine.command(remote, terminal));
        assert_eq!(words(Some("ls"), true), "ssh -o HostKeyAlias=i-1 -t developer@203.0.113.7 ls");
        assert_eq!(words(Some("ls"), false), "ssh -o HostKeyAlias=i-1 developer@203.0.113.7 ls");
        assert_eq!(words(None, true), "ssh -o HostKeyAlias=i-1 developer@203.0.113.7");
    }

    #[test]
    fn ssm_passes_the_command_through_every_shell() {
        let words = machine(None).command(Some("echo 'a b'"), true);
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
    fn ports_are_forwarded_by_ssh_or_one_session_each() {
        let forwards: Vec<PortForward> =
            ["8888", "80:db.internal:5432"].map(|text| text.parse().unwrap()).into();
        assert_eq!(
            quoted(&machine(Some("203.0.113.7")).forward(&forwards).unwrap()),
            "ssh -o HostKeyAlias=i-1 -N -o ExitOnForwardFailure=yes -L \
             127.0.0.1:8888:localhost:8888 -L 127.0.0.1:80:db.internal:5432 developer@203.0.113.7"
        );
        let told = machine(None).forward(&forwards).unwrap_err().to_string();
        assert!(told.contains("found 2 flags -L; allowed: 1"), "{told}");
        let words = machine(None).forward(&forwards[..1]).unwrap();
        assert_eq!(words[7..9], ["--document-name", "AWS-StartPortForwardingSession"]);
    }

    #[test]
    fn word_that_is_an_option_is_no_argument() {
        assert!(is_word("i-0abc") && is_word("eu-west-1"));
        for text in ["-oProxyCommand=x", "--profile", "", "a b", "i-1;x", "i-1\n"] {
            assert!(!is_word(text), "{text}");
        }
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
        let words = machine(None).command(Some(&script), false);
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
