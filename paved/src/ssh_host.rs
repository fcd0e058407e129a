//! The names of workspaces as host names of SSH: `NAME.NAMESPACE.paved` and `NAME.paved`.

use paved_client::names::is_name;

use crate::failure::Failure;

/// The end of the host names that our entries match.
const DOMAIN: &str = ".paved";

/// An environment as an SSH program names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// `NAME`, or `KIND/NAME` if a user typed the name without the domain.
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    /// Whether the text had the domain.
    pub(crate) has_domain: bool,
}

impl Host {
    /// Reads `NAME.NAMESPACE.paved`, `NAME.paved`, or a name as in other commands. Names of
    /// namespaces have no dots.
    ///
    /// # Errors
    /// The text has a token that the SSH program should have replaced, or another character than
    /// letters, digits, dots and dashes, or a dash at its start.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text.contains('%') {
            return Err(Failure::Usage(format!(
                "found {text:?}, which your SSH program has not replaced by the name of the host. \
                 Write '%h' into ProxyCommand, as `paved ssh config` does"
            )));
        }
        let lower = text.to_ascii_lowercase();
        let labels = lower.strip_suffix(DOMAIN);
        let (name, namespace) = match labels.map(|labels| (labels, labels.rsplit_once('.'))) {
            Some((_, Some((name, namespace)))) => (name, Some(namespace)),
            Some((name, None)) => (name, None),
            None => (text, None),
        };
        // A kind and a name, as in other commands.
        let own = if labels.is_some() { name } else { name.rsplit('/').next().unwrap_or_default() };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
        let is_whole = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(fits)
            && is_name(own)
            && namespace.is_none_or(is_name);
        if !is_whole {
            return Err(Failure::Usage(format!(
                "found the workspace {text:?}; allowed: NAME, NAME.paved or NAME.NAMESPACE.paved, \
                 with letters, digits, dots and dashes, and no dash at the start"
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            has_domain: labels.is_some(),
        })
    }
}

/// The name of a workspace in every namespace.
pub(crate) fn whole(name: &str, namespace: &str) -> String {
    format!("{name}.{namespace}{DOMAIN}")
}

/// The link that opens a workspace in VS Code. The editor runs OpenSSH.
pub(crate) fn url_of_editor(name: &str, namespace: &str, home: &str) -> String {
    format!("vscode://vscode-remote/ssh-remote+{}{home}", whole(name, namespace))
}

/// The name of a workspace in the default namespace. A name with a dot has none, because it would
/// name a namespace.
pub(crate) fn short(name: &str) -> Option<String> {
    (!name.contains('.')).then(|| format!("{name}{DOMAIN}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn host_has_name_and_namespace() {
        for (text, name, namespace) in [
            ("ada.paved", "ada", None),
            ("Ada.Paved", "ada", None),
            ("ada.team-vision.paved", "ada", Some("team-vision")),
            ("v1.ada.team.paved", "v1.ada", Some("team")),
            ("ada", "ada", None),
            ("gpuws/ada", "gpuws/ada", None),
        ] {
            let host = Host::parse(text).unwrap();
            assert_eq!((host.name.as_str(), host.namespace.as_deref()), (name, namespace));
            assert_eq!(host.has_domain, text.to_lowercase().ends_with(".paved"), "{text}");
        }
        assert_eq!(Host::parse(&whole("a.b", "team")).unwrap().name, "a.b");
        assert_eq!((short("ada").as_deref(), short("a.b")), (Some("ada.paved"), None));
    }

    #[test]
    fn token_that_was_not_replaced_is_an_error_with_a_hint() {
        for text in ["%n", "%h", "%n.paved", "%k", "%%h"] {
            let told = Host::parse(text).unwrap_err().to_string();
            assert!(told.contains(text) && told.contains("Write '%h' into"), "{told}");
        }
    }

    #[test]
    fn name_of_an_option_or_for_a_shell_is_an_error() {
        for text in [
            "",
            "-oProxyCommand=touch x",
            "-x.paved",
            "--kubeconfig=x.paved",
            "a b.paved",
            "$(touch x).paved",
            "a;b.paved",
            "a'b.paved",
            "a\n.paved",
            "é.paved",
            "*.paved",
            ".paved",
            "ada.-team.paved",
            "ada..paved",
            "-ada",
            "gpuws/-ada",
            "Ada",
        ] {
            let told = Host::parse(text).unwrap_err().to_string();
            assert!(told.contains("allowed: NAME"), "{text}: {told}");
        }
    }
}
