//! The archive of `paved` for downloads: a static binary with manual pages and completions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap_complete::Shell;

use super::{Architecture, Args, crates::Graph, image, licenses};

/// The file name of each shell's completions, as the shell expects it.
const COMPLETIONS: [(Shell, &str); 3] =
    [(Shell::Bash, "paved.bash"), (Shell::Zsh, "_paved"), (Shell::Fish, "paved.fish")];

/// The archive's name without `.tar.gz`.
pub fn name(architecture: Architecture) -> String {
    format!("paved-linux-{}", architecture.name())
}

/// Builds the archive for one architecture, and returns its file.
pub fn write(args: &Args, architecture: Architecture, output: &Path) -> Result<PathBuf> {
    let name = name(architecture);
    let file = output.join(format!("{name}.tar.gz"));
    let binary = args.program("paved", "paved", architecture)?;
    let mut files = vec![("paved".to_owned(), 0o755, read(&binary)?)];
    let root = args.place.root();
    for text in ["LICENSE", "NOTICE", "README.md"] {
        files.push((text.to_owned(), 0o644, read(&root.join(text))?));
    }
    // After the binary, because its build installs the packages of the pages.
    let licenses = licenses::text(args, &Graph::for_package(root, "paved")?)?;
    files.push((licenses::FILE.to_owned(), 0o644, licenses.into_bytes()));
    files.extend(completions());
    files.extend(manual()?);
    let files: Vec<_> = files
        .iter()
        .map(|(path, mode, content)| (format!("{name}/{path}"), *mode, &**content))
        .collect();
    let files: Vec<_> =
        files.iter().map(|(path, mode, content)| (&**path, *mode, *content)).collect();
    let archive = image::gzip(&image::tar(&files)?, args.effort())?;
    fs::write(&file, archive).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

type File = (String, u32, Vec<u8>);

fn completions() -> Vec<File> {
    let of_shell = |(shell, file)| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut paved::command(), "paved", &mut script);
        (format!("completions/{file}"), 0o644, script)
    };
    COMPLETIONS.into_iter().map(of_shell).collect()
}

/// A manual page for the program and for each of its commands.
fn manual() -> Result<Vec<File>> {
    let folder = tempfile::tempdir()?;
    clap_mangen::generate_to(paved::command(), folder.path())?;
    let mut pages =
        fs::read_dir(folder.path())?.map(|page| Ok(page?.path())).collect::<Result<Vec<_>>>()?;
    pages.sort();
    let page = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((format!("man/{name}"), 0o644, read(&path)?))
    };
    pages.into_iter().map(page).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_command_has_a_manual_page() {
        let pages = manual().unwrap();
        let text = |name: &str| {
            let page = pages.iter().find(|(path, ..)| *path == format!("man/{name}.1"));
            String::from_utf8_lossy(&page.unwrap_or_else(|| panic!("{name} has no page")).2)
                .into_owned()
        };
        assert!(text("paved").contains("EXIT CODES") || text("paved").contains("Exit codes"));
        let mut expected = 1;
        for command in paved::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let page = text(&format!("paved-{}", command.get_name()));
            // A manual page escapes hyphens.
            for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(
                    page.contains(&flag.replace('-', "\\-")),
                    "{}: --{flag}",
                    command.get_name()
                );
            }
            expected += 1;
        }
        assert_eq!(pages.len(), expected);
    }

    #[test]
    fn every_shell_has_completions() {
        for (path, _, script) in completions() {
            assert!(String::from_utf8_lossy(&script).contains("preview"), "{path}");
        }
    }
}
