//! Completions of a shell: flags and commands from the parser, and names of environments from the
//! cluster.
//!
//! bash, fish and zsh complete names. Elvish and PowerShell complete only flags and commands.

use std::fmt::Write as _;

use clap::{Arg, Command};
use clap_complete::Shell;

/// The flags that choose the environments to complete.
const PLACE: &str = "-n|--namespace|--context|--kubeconfig|--as";

/// The script of a shell.
pub(crate) fn script(mut command: Command, shell: Shell) -> String {
    let names = taking_names(&command);
    let values = flags_with_values(&command);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "paved", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + &bash(&names, &values),
        Shell::Fish => script + &fish(&names),
        Shell::Zsh => zsh(&script),
        _ => script,
    }
}

/// The commands with names of environments, and the number of other words before the first name.
fn taking_names(command: &Command) -> Vec<(String, usize)> {
    let is_online = |one: &Command| one.get_arguments().any(|flag| flag.get_id() == "context");
    let is_name = |flag: &Arg| {
        let names = flag.get_value_names().unwrap_or_default();
        names.first().is_some_and(|name| name == "NAME") && flag.is_positional()
    };
    let online = command.get_subcommands().filter(|one| is_online(one));
    let named = online.filter_map(|one| {
        let place = one.get_positionals().position(is_name)?;
        Some((one.get_name().to_owned(), place))
    });
    named.collect()
}

/// All flags that take the next word as their value.
fn flags_with_values(command: &Command) -> Vec<String> {
    let flags = command.get_subcommands().flat_map(Command::get_arguments);
    let flags = flags.filter(|flag| {
        !flag.is_positional() && flag.get_action().takes_values() && !flag.is_require_equals_set()
    });
    let mut all: Vec<String> = flags
        .flat_map(|flag| {
            let long = flag.get_long().map(|long| format!("--{long}"));
            let short = flag.get_short().map(|short| format!("-{short}"));
            long.into_iter().chain(short)
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn bash(names: &[(String, usize)], values: &[String]) -> String {
    let mut cases = String::new();
    for (name, place) in names {
        // The program and the command are words, too.
        _ = writeln!(cases, "        {name}) (( COMP_CWORD < {} )) && return 0 ;;", place + 2);
    }
    let values = values.join("|");
    format!(
        r#"
_paved_environments() {{
    local place=() i
    for (( i = 1; i < COMP_CWORD; i++ )); do
        case "${{COMP_WORDS[i]}}" in
            {PLACE}) place+=("${{COMP_WORDS[i]}}" "${{COMP_WORDS[i+1]}}") ;;
        esac
    done
    paved list -o name "${{place[@]}}" 2>/dev/null | sed 's|.*/||' | sort -u
}}

_paved_with_names() {{
    _paved "$@"
    local current="${{COMP_WORDS[COMP_CWORD]}}"
    case "${{COMP_WORDS[1]}}" in
{cases}        *) return 0 ;;
    esac
    [[ "$current" == -* ]] && return 0
    case "${{COMP_WORDS[COMP_CWORD-1]}}" in
        {values}) return 0 ;;
    esac
    COMPREPLY=($(compgen -W "$(_paved_environments)" -- "$current"))
}}

complete -F _paved_with_names -o bashdefault -o default paved
"#
    )
}

fn fish(names: &[(String, usize)]) -> String {
    let cases = PLACE.replace('|', " ");
    let commands: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    let commands = commands.join(" ");
    format!(
        r#"
function __paved_environments
    set -l words (commandline -opc)
    set -l place
    for i in (seq 2 (count $words))
        switch $words[$i]
            case {cases}
                set -a place $words[$i] $words[(math $i + 1)]
        end
    end
    paved list -o name $place 2>/dev/null | string replace -r '.*/' '' | sort -u
end

complete -c paved -n "__fish_seen_subcommand_from {commands}" -f -a "(__paved_environments)"
"#
    )
}

/// The script of zsh with another completion of names.
fn zsh(script: &str) -> String {
    let named = |line: &str| {
        let is_name = ["'::name --", "':name --", "'*::names --", "'*:names --"]
            .iter()
            .any(|begin| line.trim_start().starts_with(begin));
        if is_name { line.replace(":_default'", ":_paved_environments'") } else { line.to_owned() }
    };
    let script = script.lines().map(named).collect::<Vec<_>>().join("\n");
    let function = format!(
        r#"_paved_environments() {{
    local -a place names
    local i
    for (( i = 2; i < CURRENT; i++ )); do
        case "$words[i]" in
            ({PLACE}) place+=("$words[i]" "$words[i+1]") ;;
        esac
    done
    names=(${{(f)"$(paved list -o name $place 2>/dev/null | sed 's|.*/||' | sort -u)"}})
    compadd -a names
}}

"#
    );
    match script.rfind("if [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{function}{}\n", &script[..end], &script[end..]),
        None => format!("{script}\n{function}"),
    }
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command as Process;

    use super::*;

    /// The completions of a line in bash, with a fake `paved`.
    fn completed(words: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("paved.bash");
        std::fs::write(&script, super::script(crate::command(), Shell::Bash)).unwrap();
        let fake = "paved() { [[ \"$*\" == 'list -o name -n team' ]] && echo team/gpuws.p/grace \
                    || printf 'gpuws.p/ada\\ngpuws.p/ada-2\\n'; }";
        let line = format!(
            "source {}; {fake}; COMP_WORDS=({}); COMP_CWORD={}; _paved_with_names paved {} {}; \
             echo \"${{COMPREPLY[*]}}\"",
            script.display(),
            words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
            words.len() - 1,
            words.last().map(|word| format!("'{word}'")).unwrap_or_default(),
            words.get(words.len().saturating_sub(2)).copied().unwrap_or_default(),
        );
        let output = Process::new("bash").args(["-c", &line]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn names_of_environments_are_completed() {
        assert_eq!(completed(&["paved", "status", "a"]), "ada ada-2");
        assert_eq!(completed(&["paved", "delete", "ada", "ada-"]), "ada-2");
        assert_eq!(completed(&["paved", "wait", "-n", "team", ""]), "grace");
        assert!(completed(&["paved", "status", "--wat"]).starts_with("--watch"));
        assert!(!completed(&["paved", "status", "-n", ""]).contains("ada"));
        assert!(!completed(&["paved", "publish", ""]).contains("ada"), "a folder comes first");
        assert_eq!(completed(&["paved", "publish", "dist", "a"]), "ada ada-2");
        assert!(completed(&["paved", "stat"]).contains("status"));
    }

    #[test]
    fn every_shell_has_a_script_and_three_complete_names() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let script = super::script(crate::command(), shell);
            assert!(script.contains("status"), "{shell}");
            let has_names = [Shell::Bash, Shell::Fish, Shell::Zsh].contains(&shell);
            assert_eq!(script.contains("paved_environments"), has_names, "{shell}");
        }
        let zsh = super::script(crate::command(), Shell::Zsh);
        let lines: Vec<&str> =
            zsh.lines().filter(|line| line.contains(":_paved_environments'")).collect();
        assert!(lines.len() >= 8, "{lines:?}");
    }
}
