//! Programs that use the entries: ssh, scp, sftp, rsync and paramiko; and port forwards.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use xtask::python::{PARAMIKO, program};

use crate::world::{Ran, Sshd, World, has, user};

/// A file of this size has many packets.
const SIZE: usize = 24 << 20;

fn world(server: &Sshd) -> World {
    let world = World::with(&[&server.workspace("ada")]);
    world.accept(server);
    world.paved(&["ssh", "config"]).is(0, &[]);
    world
}

/// Bytes without a pattern.
fn bytes() -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..SIZE).map(|_| next()).collect()
}

#[test]
fn workspace_is_reached_by_its_name() {
    let Some(server) = Sshd::start() else { return };
    let world = world(&server);
    world.ssh(&server, &["ada.paved", "echo here; exit 7"]).is(7, &["here\n"]);
    let path = world.home.path().join("data");
    fs::write(&path, bytes()).unwrap();
    let mut ssh = world.command("ssh");
    ssh.args(world.flags(&server)).args(["ada.team.paved", "sha256sum"]);
    let sum = Ran::of(&ssh.stdin(fs::File::open(&path).unwrap()).output().unwrap());
    let own = Ran::of(&Command::new("sha256sum").arg(&path).output().unwrap());
    assert_eq!(sum.is(0, &[]).out.split(' ').next(), own.out.split(' ').next());
}

#[test]
fn files_are_copied_by_scp_sftp_and_rsync() {
    let Some(server) = Sshd::start() else { return };
    let world = world(&server);
    let (there, back) = (server.path("there"), world.home.path().join("back"));
    let path = world.home.path().join("data");
    fs::write(&path, bytes()).unwrap();
    let remote = format!("ada.paved:{}", there.display());
    let copied = |what: &str| {
        assert!(fs::read(&back).unwrap() == bytes(), "{what}: other bytes");
        fs::remove_file(&there).unwrap();
        fs::remove_file(&back).unwrap();
    };
    let run = |command: &mut Command| {
        Ran::of(&command.output().unwrap()).is(0, &[]);
    };
    let scp = || {
        let mut scp = world.command("scp");
        scp.args(world.flags(&server));
        scp
    };
    run(scp().arg(&path).arg(&remote));
    run(scp().arg(&remote).arg(&back));
    copied("scp");

    let batch = format!(
        "put {} {there}\nget {there} {}\n",
        path.display(),
        back.display(),
        there = there.display()
    );
    fs::write(world.home.path().join("batch"), batch).unwrap();
    run(world.command("sftp").args(world.flags(&server)).args(["-b", "batch", "ada.paved"]));
    copied("sftp");

    if has(Path::new("/usr/bin/rsync").exists(), "found no rsync: apt-get install rsync") {
        let shell = format!("ssh {}", world.flags(&server).join(" "));
        run(world.command("rsync").args(["-az", "-e", &shell]).arg(&path).arg(&remote));
        run(world.command("rsync").args(["-az", "-e", &shell]).arg(&remote).arg(&back));
        copied("rsync");
    }
}

/// paramiko ignores KnownHostsCommand, and does not replace `%n`.
#[test]
fn paramiko_uses_the_entry_and_the_printed_keys() {
    let Some(server) = Sshd::start() else { return };
    let world = world(&server);
    let python = program(PARAMIKO, "python").unwrap();
    let keys = world.paved(&["ssh", "known-hosts", "ada"]);
    fs::write(world.home.path().join("keys"), &keys.is(0, &[]).out).unwrap();
    let script = "
import paramiko, sys
config, keys, identity, user, host, there = sys.argv[1:]
entry = paramiko.SSHConfig.from_path(config).lookup(host)
client = paramiko.SSHClient()
client.load_host_keys(keys)
client.set_missing_host_key_policy(paramiko.RejectPolicy())
assert entry['user'] == 'developer', entry
client.connect(host, username=user, key_filename=identity, allow_agent=False,
    look_for_keys=False, sock=paramiko.ProxyCommand(entry['proxycommand']))
print(client.exec_command('echo here')[1].read().decode())
with client.open_sftp().open(there, 'wb') as file:
    file.write(b'x' * 1000000)
client.close()
";
    for host in ["ada.paved", "ada.team.paved"] {
        let ran = world
            .command(python.to_str().unwrap())
            .args(["-c", script])
            .arg(world.config_path())
            .arg(world.home.path().join("keys"))
            .arg(server.path("id"))
            .args([&user(), host])
            .arg(server.path("there"))
            .output()
            .unwrap();
        Ran::of(&ran).is(0, &["here\n"]);
        assert_eq!(fs::metadata(server.path("there")).unwrap().len(), 1_000_000);
    }
}

#[test]
fn connection_without_an_address_uses_session_manager() {
    let Some(server) = Sshd::start() else { return };
    let world = world(&server);
    let mut ada = server.workspace("ada");
    ada["status"]["connection"] = json!("aws ssm start-session --target i-0abc --region eu-west-1");
    world.put(&ada);
    // The document AWS-StartSSHSession carries the bytes between its streams and port 22.
    let script = format!(
        "#!/bin/bash\necho \"$*\" >\"$HOME/ran\"\nexec 3<>/dev/tcp/{}/22\ncat <&3 2>/dev/null &\nexec cat >&3\n",
        server.address
    );
    world.program("aws", &script);
    let told = world.ssh(&server, &["ada.paved", "echo", "here"]);
    told.is(0, &["here\n", "no network may connect by SSH"]);
    let ran = fs::read_to_string(world.home.path().join("ran")).unwrap();
    assert_eq!(
        ran,
        "ssm start-session --target i-0abc --region eu-west-1 --document-name \
         AWS-StartSSHSession --parameters portNumber=22\n"
    );
    // The same for an entry with --ssm, although the machine has an address.
    world.put(&server.workspace("ada"));
    fs::remove_file(world.home.path().join("ran")).unwrap();
    world.paved(&["ssh", "config", "--ssm"]).is(0, &[]);
    world.ssh(&server, &["ada.paved", "echo", "here"]).is(0, &["here\n"]);
    assert!(world.home.path().join("ran").exists());
    fs::remove_file(world.home.path().join("bin/aws")).unwrap();
    world.ssh(&server, &["ada.paved", "true"]).is(255, &["aws is not installed"]);
}

#[test]
fn port_of_the_workspace_is_forwarded() {
    let Some(server) = Sshd::start() else { return };
    let world = world(&server);
    let behind = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = behind.local_addr().unwrap().port();
    let near = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in behind.incoming() {
            stream.unwrap().write_all(b"hello").unwrap();
        }
    });
    // A login of this process's user with the test's key. The first value of an option counts.
    let known = world.home.path().join(".ssh/known_hosts");
    let script = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -F none -i {} -l {} -o UserKnownHostsFile={} \
         -o BatchMode=yes \"$@\"\n",
        server.path("id").display(),
        user(),
        known.display()
    );
    world.program("ssh", &script);
    let forward = format!("{near}:localhost:{far}");
    let mut paved = world.command(env!("CARGO_BIN_EXE_paved"));
    paved.args(["connect", "ada", "-L", &forward]).stderr(Stdio::piped());
    let mut child = paved.spawn().unwrap();
    let begin = Instant::now();
    let text = loop {
        let mut text = String::new();
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", near)) {
            stream.read_to_string(&mut text).unwrap();
            break text;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", child.kill());
        std::thread::sleep(Duration::from_millis(50));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(text, "hello");
    for flag in ["-L=x", "-L0", "-L8888:-oProxyCommand=x:80"] {
        world.paved(&["connect", "ada", flag]).is(1, &["allowed: PORT or PORT:HOST:PORT"]);
    }
}
