//! The archive of `paved` for downloads: a static binary with manual pages and completions. Beside
//! it is the script that installs it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap_complete::Shell;

use super::{Architecture, Args, crates::Graph, image, licenses, sums};

/// The file name of each shell's completions, as the shell expects it.
const COMPLETIONS: [(Shell, &str); 3] =
    [(Shell::Bash, "paved.bash"), (Shell::Zsh, "_paved"), (Shell::Fish, "paved.fish")];

/// The archive's name without `.tar.gz`.
pub fn name(architecture: Architecture) -> String {
    format!("paved-linux-{}", architecture.name())
}

/// The name of the script that installs an archive.
pub const INSTALLER: &str = "install.sh";

/// Copies the script, and returns its file.
pub fn installer(args: &Args, output: &Path) -> Result<PathBuf> {
    let file = output.join(INSTALLER);
    fs::write(&file, read(&script(args))?)
        .with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// The path of the script.
fn script(args: &Args) -> PathBuf {
    args.place.root().join("package").join(INSTALLER)
}

/// Builds the archive for one architecture, and returns its file.
pub fn write(args: &Args, architecture: Architecture, output: &Path) -> Result<PathBuf> {
    let binary = read(&args.program("paved", "paved", architecture)?)?;
    // After the binary, because its build installs the packages of the pages.
    let licenses = licenses::text(args, &Graph::for_package(args.place.root(), "paved")?)?;
    pack(args, architecture, binary, licenses, output)
}

/// Packs a program as the archive for one architecture, and returns its file. The archive has the
/// digests of its files, so that the script can check an unpacked archive.
pub fn pack(
    args: &Args,
    architecture: Architecture,
    binary: Vec<u8>,
    licenses: String,
    output: &Path,
) -> Result<PathBuf> {
    let name = name(architecture);
    let file = output.join(format!("{name}.tar.gz"));
    let mut files = vec![("paved".to_owned(), 0o755, binary)];
    let root = args.place.root();
    for text in ["LICENSE", "NOTICE", "README.md"] {
        files.push((text.to_owned(), 0o644, read(&root.join(text))?));
    }
    files.push((licenses::FILE.to_owned(), 0o644, licenses.into_bytes()));
    files.push((INSTALLER.to_owned(), 0o755, read(&script(args))?));
    files.extend(completions());
    files.extend(manual()?);
    files.push((sums::FILE.to_owned(), 0o644, sums(&files).into_bytes()));
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

/// The digests of files, in the format of `sha256sum --check`.
fn sums(files: &[File]) -> String {
    let line = |(path, _, content): &File| format!("{}  {path}\n", image::sha256(content));
    files.iter().map(line).collect()
}

fn completions() -> Vec<File> {
    let of_shell = |(shell, file)| {
        (format!("completions/{file}"), 0o644, paved::completions(shell).into_bytes())
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
        let mut program = paved::command();
        program.build();
        let named = |one: &clap::Command| !one.is_hide_set() && one.get_name() != "help";
        let commands: Vec<_> = program.get_subcommands().filter(|one| named(one)).collect();
        let inner = commands.iter().flat_map(|one| one.get_subcommands());
        for command in commands.iter().copied().chain(inner.filter(|one| named(one))) {
            let page = text(command.get_display_name().unwrap_or(command.get_name()));
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
