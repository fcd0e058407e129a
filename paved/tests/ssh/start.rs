//! Stopped workspaces: ssh starts them after a question on the terminal, or by a flag of the entry.

use std::io::Write;
use std::process::Stdio;

use crate::world::{Ran, Sshd, World, stopped};

/// Runs a command line on a terminal of its own, with this input.
fn on_a_terminal(world: &World, line: &str, typed: &str) -> Ran {
    let mut script = world.command("script");
    script.args(["-qec", line, "/dev/null"]).stdin(Stdio::piped());
    let mut child = script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    Ran::of(&output)
}

/// A command line of ssh without its standard error, which a script discards.
fn line(world: &World, server: &Sshd, words: &str) -> String {
    let flags: Vec<String> =
        world.flags(server).into_iter().map(|word| format!("'{word}'")).collect();
    format!("ssh {} {words} 2>/dev/null", flags.join(" "))
}

#[test]
fn stopped_workspace_without_a_terminal_is_not_started() {
    let Some(server) = Sshd::start() else { return };
    let world = World::with(&[&stopped("ada")]);
    world.accept(&server);
    world.paved(&["ssh", "config"]).is(0, &[]);
    let words = ["team/ada is stopped", "paved ssh config --start"];
    world.ssh(&server, &["ada.paved", "true"]).is(255, &words);
    assert_eq!(world.writes(), 0);
}

#[test]
fn entry_with_a_start_flag_starts_the_workspace() {
    let Some(server) = Sshd::start() else { return };
    let world = World::with(&[&stopped("ada")]);
    world.accept(&server);
    world.paved(&["ssh", "config", "--start"]).is(0, &[]);
    world.start_on_request(server.workspace("ada"));
    world.ssh(&server, &["ada.paved", "echo", "here"]).is(0, &["here\n"]);
    assert_eq!(world.writes(), 1);
}

#[test]
fn stopped_workspace_is_started_after_a_question_on_the_terminal() {
    let Some(server) = Sshd::start() else { return };
    let ada = stopped("ada");
    let world = World::with(&[&ada]);
    world.accept(&server);
    world.paved(&["ssh", "config"]).is(0, &[]);
    let ssh = line(&world, &server, "ada.paved echo here");
    let told = on_a_terminal(&world, &ssh, "n\n");
    told.is(255, &["team/ada is stopped. Start it? [y/N]", "stays stopped"]);
    assert_eq!(world.writes(), 0);
    world.start_on_request(server.workspace("ada"));
    on_a_terminal(&world, &ssh, "y\n").is(0, &["Start it? [y/N]", "here"]);
    assert_eq!(world.writes(), 1);
}

/// With these options, OpenSSH discards the standard error of the command.
#[test]
fn question_is_seen_with_a_shared_connection() {
    let Some(server) = Sshd::start() else { return };
    let ada = stopped("ada");
    let world = World::with(&[&ada]);
    world.accept(&server);
    world.paved(&["ssh", "config"]).is(0, &[]);
    let shared = format!(
        "-o ControlMaster=auto -o ControlPath={} -o ControlPersist=60",
        server.path("control").display()
    );
    let ssh = |words: &str| line(&world, &server, &format!("{shared} {words}"));
    let told = on_a_terminal(&world, &ssh("ada.paved echo here"), "n\n");
    told.is(255, &["team/ada is stopped. Start it? [y/N]", "stays stopped"]);
    world.start_on_request(server.workspace("ada"));
    // The second command uses the first connection, and so needs no cluster.
    let lines = [
        ssh("ada.paved echo here"),
        "rm .kube/config".to_owned(),
        ssh("ada.paved echo again"),
        ssh("-O exit ada.paved"),
        format!("! {}", ssh("ada.paved true")),
    ];
    let told = on_a_terminal(&world, &lines.join(" && "), "y\n");
    told.is(0, &["Start it? [y/N]", "here", "again", "could not read kubeconfig"]);
    assert_eq!(world.writes(), 1);
}
