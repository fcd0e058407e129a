//! The entries of workspaces in a configuration file of OpenSSH.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use paved_client::names::is_name;

use crate::cli::Access;
use crate::connect::quote;
use crate::failure::Failure;
use crate::ssh_host as host;

/// The programs and flags of our entries.
pub(super) struct Commands {
    /// The absolute path of this program.
    program: String,
    /// Flags of all commands: the kubeconfig and the user.
    flags: Vec<String>,
    /// Flags of `paved connect`.
    connect: Vec<String>,
    /// The context of the workspaces with an entry.
    context: Option<String>,
}

impl Commands {
    /// The commands for the flags of `paved ssh config`.
    pub(super) fn new(
        access: &Access,
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        connect: &[(bool, &str)],
    ) -> Result<Self, Failure> {
        let mut flags = Vec::new();
        if let Some(path) = kubeconfig {
            let path = path_word("kubeconfig", &std::path::absolute(path)?)?;
            flags.extend(["--kubeconfig".to_owned(), path]);
        }
        if let Some(user) = &access.impersonate {
            flags.extend(["--as".to_owned(), checked("--as", user)?]);
        }
        let connect = connect.iter().filter(|(is_set, _)| *is_set);
        let connect = connect.map(|(_, flag)| (*flag).to_owned()).collect();
        let context = context.map(|context| checked("context", context)).transpose()?;
        let program = path_word("path of this program", &program()?)?;
        Ok(Self { program, flags, connect, context })
    }

    /// The options that run this program, for the workspaces of a context and a namespace.
    fn options(&self, place: &[String]) -> String {
        let common = || self.flags.iter().chain(place).map(String::as_str);
        let connect = [self.program.as_str(), "connect", "--stdio"].into_iter();
        let connect = connect.chain(self.connect.iter().map(String::as_str)).chain(common());
        let connect: Vec<String> = connect.map(|word| token(&quote(word))).collect();
        let known = ["ssh", "known-hosts"].into_iter().chain(common());
        let known = known.map(|word| token(&argument(word)));
        // OpenSSH replaces no tokens in the path of this program.
        let known: Vec<String> = std::iter::once(argument(&self.program)).chain(known).collect();
        // A shell reads the first line, and its quotes keep each name one word.
        format!(
            "  ProxyCommand {} '%h'\n  KnownHostsCommand {} %H\n",
            connect.join(" "),
            known.join(" ")
        )
    }

    /// The entry of a workspace. `is_default` says whether the short name selects its namespace.
    pub(super) fn entry(&self, workspace: &Workspace) -> String {
        let Workspace { name, namespace, is_default } = workspace;
        let mut names = host::whole(name, namespace);
        if let Some(short) = host::short(name).filter(|_| *is_default) {
            _ = write!(names, " {short}");
        }
        let context = self.context.iter().flat_map(|context| ["--context", context]);
        let place: Vec<String> =
            context.chain(["--namespace", namespace]).map(str::to_owned).collect();
        format!("Host {names}\n{}", self.options(&place))
    }

    /// The lines for all workspaces. The names of this section have no dash at their start and no
    /// quote, so that a name never ends the quotes of `ProxyCommand`.
    pub(super) fn rest(&self, user: &str) -> String {
        format!(
            "Host *.paved !-* \"!*'*\"\n  User {user}\n{}  UserKnownHostsFile none\n  \
             GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  ControlPath none\n",
            self.options(&[])
        )
    }
}

/// A workspace with an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Workspace {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Whether its namespace is the default one.
    pub(super) is_default: bool,
}

impl Workspace {
    /// A workspace, unless its name could be read as an option, a pattern or several words.
    pub(super) fn new(name: &str, namespace: &str, default: &str) -> Option<Self> {
        let is_default = namespace == default;
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        (is_name(&name) && is_name(&namespace) && !namespace.contains('.')).then_some(Self {
            namespace,
            name,
            is_default,
        })
    }
}

/// The path of this program: its place in `PATH`, or else the file that runs. Package managers
/// replace that file by one of another name.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let name = own.file_name().unwrap_or_default().to_owned();
    let real = own.canonicalize()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|path| path.canonicalize().is_ok_and(|path| path == real));
    Ok(found.unwrap_or(own))
}

/// A path as a word of an entry.
fn path_word(what: &str, path: &Path) -> Result<String, Failure> {
    let text = path.to_str().ok_or_else(|| {
        Failure::Usage(format!("found {} as {what}; allowed: a path in UTF-8", path.display()))
    })?;
    checked(what, text)
}

/// Escapes the tokens of OpenSSH in a word.
fn token(word: &str) -> String {
    word.replace('%', "%%")
}

/// Quotes a word without a backslash for an option that OpenSSH splits itself, without a shell.
fn argument(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('"', r#"\""#))
}

/// A word of an entry. Line feeds would begin another line, and OpenSSH reads backslashes before
/// quotes in another way than shells.
fn checked(what: &str, word: &str) -> Result<String, Failure> {
    if word.contains(|c: char| c.is_control() || c == '\\') {
        return Err(Failure::Usage(format!(
            "found {word:?} as {what}; allowed: no control character and no backslash. Nothing was \
             changed"
        )));
    }
    Ok(word.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn name_that_is_an_option_or_a_pattern_has_no_entry() {
        for name in ["-oProxyCommand=x", "a b", "*", "a\n  ProxyCommand x", "!a", "$(x)", ""] {
            assert_eq!(Workspace::new(name, "team", "team"), None, "{name}");
            assert_eq!(Workspace::new("ada", name, "team"), None, "{name}");
        }
        assert_eq!(Workspace::new("ada", "a.b", "team"), None, "a dot in a namespace");
        assert!(Workspace::new("ada", "team", "team").unwrap().is_default);
    }

    #[test]
    fn word_that_could_begin_a_line_is_an_error() {
        assert!(checked("context", "arn:aws:eks:eu-west-1:1:cluster/a b").is_ok());
        for word in ["a\nHost *", "a\r", "a\\"] {
            let told = checked("context", word).unwrap_err().to_string();
            assert!(told.contains("as context; allowed: no control character"), "{told}");
        }
    }

    #[test]
    fn words_are_quoted_for_their_readers() {
        for (word, shell, openssh) in [
            ("/usr/bin/paved", "/usr/bin/paved", "/usr/bin/paved"),
            ("/a b/paved", "'/a b/paved'", "\"/a b/paved\""),
            ("100%", "100%%", "100%%"),
            ("it's", r"'it'\''s'", "\"it's\""),
            (r#"a"b"#, r#"'a"b'"#, r#""a\"b""#),
        ] {
            assert_eq!(token(&quote(word)), shell);
            assert_eq!(token(&argument(word)), openssh);
        }
    }
}
