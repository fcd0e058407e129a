//! The configuration file, and host keys.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::world::{ID, Sshd, World, stopped, workspace};

const THEIRS: &str =
    "Include other\nControlMaster auto\n\nHost *\n  ControlPath ~/.ssh/%C\n  User me\n";

#[test]
fn entries_are_written_once_and_the_other_lines_stay() {
    let ada = workspace("ada", "203.0.113.7");
    let mut other = workspace("grace", "203.0.113.8");
    other["metadata"]["namespace"] = json!("audio");
    let world = World::with(&[&ada, &other, &stopped("off")]);
    let folder = world.home.path().join(".ssh");
    fs::create_dir(&folder).unwrap();
    // A user's file is often a link to a repository.
    fs::write(world.home.path().join("mine"), THEIRS).unwrap();
    fs::set_permissions(world.home.path().join("mine"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink(world.home.path().join("mine"), world.config_path()).unwrap();

    let words = ["now has 2 workspaces of namespace team of context \"c\"", "  ssh ada.paved\n"];
    let told = world.paved(&["ssh", "config"]);
    told.is(0, &words).is(0, &["code --remote ssh-remote+ada.team.paved /home/developer"]);
    let once = world.config();
    assert!(once.ends_with(THEIRS), "{once}");
    for line in ["Host ada.team.paved ada.paved\n", "Host off.team.paved off.paved\n"] {
        assert!(once.contains(line), "{once}");
    }
    let paved = env!("CARGO_BIN_EXE_paved");
    let proxy =
        format!("  ProxyCommand {paved} connect --stdio --context c --namespace team '%h'\n");
    let known =
        format!("  KnownHostsCommand {paved} ssh known-hosts --context c --namespace team %H\n");
    assert!(once.contains(&proxy) && once.contains(&known), "{once}");
    assert!(fs::symlink_metadata(world.config_path()).unwrap().is_symlink());
    assert_eq!(fs::metadata(world.config_path()).unwrap().permissions().mode() & 0o777, 0o640);
    world.paved(&["ssh", "config"]).is(0, &["already has 2 workspaces"]);
    assert_eq!(world.config(), once);

    // Other namespaces have no short name. Entries of the first command stay.
    world
        .paved(&["ssh", "config", "-A", "--start"])
        .is(0, &["ssh ada.paved", "ssh grace.audio.paved"]);
    let all = world.config();
    assert!(all.contains("Host grace.audio.paved\n") && all.contains(&proxy), "{all}");
    assert!(all.contains("connect --stdio --start --context c --namespace audio '%h'"), "{all}");
    world.paved(&["ssh", "config", "--remove"]).is(0, &["removed the entries"]);
    assert_eq!(world.config(), THEIRS);
    world.paved(&["ssh", "config", "--remove"]).is(0, &["has no entries"]);
    assert_eq!(world.writes(), 0);
}

#[test]
fn options_of_the_user_for_all_hosts_do_not_change_workspaces() {
    let world = World::with(&[&workspace("ada", "203.0.113.7")]);
    fs::create_dir(world.home.path().join(".ssh")).unwrap();
    fs::write(world.config_path(), THEIRS).unwrap();
    world.paved(&["ssh", "config"]).is(0, &[]);
    let options = |host: &str| {
        let config = world.config_path();
        let output =
            world.command("ssh").args(["-G", "-F"]).arg(config).arg(host).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let ada = options("ada.paved");
    for line in [
        "user developer\n",
        "stricthostkeychecking true\n",
        "userknownhostsfile none\n",
        "globalknownhostsfile none\n",
        "ssh known-hosts --context c --namespace team %H\n",
    ] {
        assert!(ada.contains(line), "{line}: {ada}");
    }
    assert!(!ada.contains("controlpath"), "{ada}");
    assert!(options("new.audio.paved").contains("connect --stdio '%h'\n"), "any workspace");
    // The options before the user's first Host count for all hosts.
    let other = options("example.org");
    assert!(other.contains("controlmaster auto\n") && other.contains("user me\n"), "{other}");
    assert!(!other.contains("paved"), "{other}");
}

#[test]
fn file_that_cannot_be_understood_stays_unchanged() {
    let world = World::with(&[&workspace("ada", "203.0.113.7")]);
    fs::create_dir(world.home.path().join(".ssh")).unwrap();
    for text in ["# >>> paved ssh config >>>\nHost x\n", "\n# <<< paved ssh config <<<\n"] {
        fs::write(world.config_path(), text).unwrap();
        for args in [&["ssh", "config"][..], &["ssh", "config", "--remove"]] {
            world.paved(args).is(1, &[".ssh/config: found ", "Nothing was changed"]);
            assert_eq!(world.config(), text);
        }
    }
    fs::write(world.config_path(), b"# \xff\n").unwrap();
    world.paved(&["ssh", "config"]).is(1, &["could not read", ".ssh/config"]);
    assert_eq!(fs::read(world.config_path()).unwrap(), b"# \xff\n");
    world.program("ssh", "#!/bin/sh\necho 'OpenSSH_8.0p1, OpenSSL 1.1.1k' >&2\n");
    fs::remove_file(world.config_path()).unwrap();
    world.paved(&["ssh", "config"]).is(1, &["found OpenSSH 8.0; allowed: 8.5 or later"]);
    assert!(!world.config_path().exists());
}

#[test]
fn new_file_is_for_its_owner_alone() {
    let world = World::with(&[]);
    world.paved(&["ssh", "config"]).is(0, &["now has no workspaces", "NAME.NAMESPACE.paved"]);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(world.config_path()), 0o600);
    assert_eq!(mode(world.home.path().join(".ssh")), 0o700);
    let file = world.home.path().join("other");
    let told = world.paved(&["ssh", "config", "--file", file.to_str().unwrap()]);
    told.is(0, &[&format!("Include {}", file.display())]);
    assert!(file.exists());
}

#[test]
fn program_and_kubeconfig_with_blanks_and_percent_signs_still_run() {
    let Some(server) = Sshd::start() else { return };
    let world = World::with(&[&server.workspace("ada")]);
    world.accept(&server);
    let folder = world.home.path().join("it's 100% mine");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("paved");
    fs::copy(env!("CARGO_BIN_EXE_paved"), &program).unwrap();
    let kubeconfig = folder.join("config");
    fs::rename(world.home.path().join(".kube/config"), &kubeconfig).unwrap();
    let written = world
        .command(program.to_str().unwrap())
        .args(["ssh", "config"])
        .env("KUBECONFIG", &kubeconfig)
        .output()
        .unwrap();
    assert!(written.status.success(), "{written:?}");
    for host in ["ada.paved", "ada.team.paved"] {
        world.ssh(&server, &[host, "echo", "here"]).is(0, &["here\n"]);
    }
    // The block follows the program when it moves.
    let told = world.paved(&["ssh", "config", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    told.is(0, &["now has 1 workspace"]);
    assert!(!world.config().contains("mine/paved"), "{}", world.config());
    world.ssh(&server, &["ada.paved", "echo", "here"]).is(0, &["here\n"]);
}

#[test]
fn name_that_is_an_option_or_a_line_is_not_written() {
    let names = ["-oProxyCommand=touch x", "ada\n  ProxyCommand touch x", "*", "a b", "$(touch x)"];
    let objects = names.map(|name| workspace(name, "203.0.113.7"));
    let world = World::with(&objects.each_ref());
    let told = world.paved(&["ssh", "config"]);
    told.is(0, &["now has no workspaces", "no entry for", "not a host name"]);
    assert!(!world.config().contains("touch"), "{}", world.config());
    assert_eq!(told.err.lines().count(), names.len(), "{}", told.err);
}

#[test]
fn argument_that_is_no_name_reaches_no_program() {
    let world = World::with(&[&workspace("ada", "203.0.113.7")]);
    world.program("aws", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    world.program("ssh-keygen", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    for name in
        ["%n", "%h", "%n.paved", "a;touch x.paved", "ada.-x.paved", "../ada", "a b", "ada\n"]
    {
        for command in [&["connect", "--stdio"][..], &["ssh", "known-hosts"]] {
            let args: Vec<&str> = command.iter().copied().chain([name]).collect();
            let told = world.paved(&args);
            let hint =
                if name.contains('%') { "Write '%h' into ProxyCommand" } else { "allowed: NAME" };
            told.is(1, &["error: found ", hint]);
            assert_eq!((told.err.lines().count(), told.out.as_str()), (1, ""), "{told:?}");
        }
    }
    for name in ["-oProxyCommand=touch x", "--kubeconfig=x.paved", "-x"] {
        for command in [&["connect", "--stdio"][..], &["ssh", "known-hosts"], &["connect"]] {
            let args: Vec<&str> = command.iter().copied().chain([name]).collect();
            world.paved(&args).is(1, &["error: "]);
        }
        world.paved(&["ssh", "known-hosts", "--", name]).is(1, &["allowed: NAME"]);
    }
    world.paved(&["ssh", "ada"]).is(1, &["found \"ada\"", "run `paved connect NAME`"]);
    assert_eq!(world.cluster.requests().len(), 0);
    assert!(!world.home.path().join("ran").exists() && !world.home.path().join("x").exists());
}

#[test]
fn host_name_for_a_shell_runs_no_command() {
    let world = World::with(&[]);
    world.paved(&["ssh", "config"]).is(0, &[]);
    for host in ["$(touch ran).paved", "a;touch ran;.paved", "a';touch ran;'.paved", "-x.paved"] {
        let config = world.config_path();
        let mut ssh = world.command("ssh");
        // The file `ran` would be in the home folder, which is the current one.
        let ran =
            ssh.arg("-F").arg(config).args(["-o", "BatchMode=yes", "--", host, "true"]).output();
        assert!(!ran.unwrap().status.success(), "{host}");
        assert!(!world.home.path().join("ran").exists(), "{host}");
    }
}

#[test]
fn unknown_host_key_ends_the_connection_with_the_next_step() {
    let Some(server) = Sshd::start() else { return };
    let world = World::with(&[&server.workspace("ada")]);
    world.paved(&["ssh", "config"]).is(0, &[]);
    let told = world.ssh(&server, &["ada.paved", "echo", "here"]);
    let words = ["has no known host key", "HostKeyAlias=i-0abc ada.paved"];
    assert_eq!(told.is(255, &words).out, "");
    world.paved(&["ssh", "known-hosts", "ada"]).is(4, &["HostKeyAlias=i-0abc ada.team.paved"]);

    // The printed command, with the answer to its question.
    let words = told.err.split("accept it: ssh ").nth(1).unwrap().lines().next().unwrap();
    let words = words.replace('~', world.home.path().to_str().unwrap());
    let words = words.replace("Checking=ask", "Checking=accept-new");
    let args: Vec<&str> = words.split(' ').chain(["echo", "here"]).collect();
    world.ssh(&server, &args).is(0, &["here\n"]);
    world.ssh(&server, &["ada.paved", "echo", "here"]).is(0, &["here\n"]);

    // Many systems hash the names in the file.
    let file = world.home.path().join(".ssh/known_hosts");
    assert!(fs::read_to_string(&file).unwrap().starts_with(ID));
    let hashed = world.command("ssh-keygen").args(["-H", "-f"]).arg(&file).output().unwrap();
    assert!(hashed.status.success(), "{hashed:?}");
    world.ssh(&server, &["ada.paved", "echo", "here"]).is(0, &["here\n"]);
    let told = world.paved(&["ssh", "known-hosts", "ada"]);
    let line = format!("ada.team.paved,ada.paved {}", server.host_key());
    assert!(told.is(0, &[]).out.contains(&line), "{told:?}");
    let told = world.paved(&["ssh", "known-hosts", "[ada.paved]:2222"]);
    assert!(told.is(0, &[]).out.starts_with("[ada.paved]:2222 ssh-ed25519 "), "{told:?}");
}

#[test]
fn changed_host_key_ends_the_connection() {
    let (Some(server), Some(other)) = (Sshd::start(), Sshd::start()) else { return };
    let world = World::with(&[&server.workspace("ada")]);
    world.paved(&["ssh", "config"]).is(0, &[]);
    world.accept(&other);
    let told = world.ssh(&server, &["ada.paved", "echo", "here"]);
    assert_eq!(told.is(255, &["Host key verification failed"]).out, "");
}
