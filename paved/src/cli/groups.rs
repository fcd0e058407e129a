//! The groups of commands in `paved --help`.

use std::fmt::Write as _;

/// The groups, each with its commands in the order of a user's day.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Choose and try", &["kinds", "offers", "init", "validate", "preview", "demo"]),
    (
        "Work with environments",
        &["apply", "wait", "list", "status", "cost", "connect", "ssh", "publish"],
    ),
    ("Lifetimes and deletion", &["extend", "keep", "stop", "start", "delete"]),
    ("Operate a platform", &["platform", "doctor", "portal", "controller", "completions"]),
];

/// The widest line, in characters: a terminal has 80 columns.
const WIDTH: usize = 80;

/// The column where the description of a command begins.
const COLUMN: usize = 15;

/// Sets a help text of `command` that lists its commands by groups.
pub(super) fn grouped(command: clap::Command) -> clap::Command {
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let found = names.iter().filter_map(|name| command.find_subcommand(name));
        let lines: Vec<String> = found.map(line).collect();
        if !lines.is_empty() {
            let _ = write!(groups, "\n{title}:\n{}", lines.concat());
        }
    }
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The name of a command with its description.
fn line(command: &clap::Command) -> String {
    let mut about = command.get_about().map(ToString::to_string).unwrap_or_default();
    for alias in command.get_visible_aliases() {
        let _ = write!(about, " [alias: {alias}]");
    }
    let mut text = format!("  {:width$}", command.get_name(), width = COLUMN - 2);
    let mut used = COLUMN;
    for (number, word) in about.split_whitespace().enumerate() {
        if number > 0 && used + 1 + word.chars().count() > WIDTH {
            let _ = write!(text, "\n{:COLUMN$}", "");
            used = COLUMN;
        } else if number > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += word.chars().count();
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::whole();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        if cfg!(feature = "demo") {
            assert_eq!(grouped, all);
        }
        assert!(all.iter().all(|name| grouped.contains(name)), "{all:?}");
    }

    #[test]
    fn help_fits_on_eighty_columns() {
        let help = Cli::whole().render_help().to_string();
        let groups = help.split("Options:").next().unwrap_or_default();
        assert!(groups.contains("\nLifetimes and deletion:\n  extend "), "{groups}");
        let wide: Vec<&str> = groups
            .lines()
            .skip_while(|line| !line.starts_with("Usage"))
            .filter(|line| line.chars().count() > WIDTH)
            .collect();
        assert!(wide.is_empty(), "{wide:?}");
    }
}
