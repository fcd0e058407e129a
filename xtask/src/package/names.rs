//! The names of packages, and of the objects that Crossplane installs from them.

use std::{fmt, str::FromStr};

use function_paved_road::apis::{AnyApi, Flavour};
use function_paved_road::manifests;

/// A registry with the path of all packages, for example `ghcr.io/acme`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry(String);

impl Registry {
    /// The registry of the releases.
    pub const DEFAULT: &str = manifests::REGISTRY;

    /// The host, for example `ghcr.io`.
    pub fn host(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(host, _)| host)
    }

    /// The Function's package.
    pub fn function(&self) -> String {
        format!("{self}/{}", manifests::FUNCTION)
    }

    /// The name of the Function that Crossplane installs as a dependency of a Configuration.
    /// Compositions must refer to the Function by this name.
    pub fn installed_function(&self) -> String {
        manifests::installed_function(&self.0)
    }

    /// The portal's image.
    pub fn portal(&self) -> String {
        format!("{self}/{}", super::portal::NAME)
    }

    /// The demo's image.
    pub fn demo(&self) -> String {
        format!("{self}/{}", super::portal::DEMO.name)
    }

    /// The folder of the chart. Helm adds the chart's name.
    pub fn charts(&self) -> String {
        format!("{self}/charts")
    }

    /// The package of an API, as claims API or namespaced API.
    pub fn configuration(&self, api: &dyn AnyApi, flavour: Flavour) -> String {
        format!("{self}/{}", configuration(api, flavour))
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for Registry {
    type Err = String;

    /// Crossplane 2 requires a registry in a reference. The registry's name must have a dot or a
    /// port.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("{text:?}: expected a registry and a path, such as {}", Self::DEFAULT);
        let (host, path) = text.split_once('/').ok_or_else(wanted)?;
        let is_part = |part: &str| {
            let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(fit)
        };
        let is_host = host.contains(['.', ':']) && host.split(':').all(is_part);
        if is_host && path.split('/').all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(wanted())
        }
    }
}

pub use function_paved_road::manifests::configuration;

/// Checks a version. Crossplane accepts and compares only semantic versions.
pub(crate) fn release(text: &str) -> Result<String, String> {
    let wanted = || format!("{text:?}: expected a semantic version with a v, such as v1.2.3");
    let number = text.strip_prefix('v').ok_or_else(wanted)?;
    let (number, suffix) =
        number.split_once('-').map_or((number, None), |(number, suffix)| (number, Some(suffix)));
    let is_number =
        |part: &str| part.parse::<u32>().is_ok() && (part == "0" || !part.starts_with(['0', '+']));
    let is_suffix = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let fits = number.split('.').count() == 3
        && number.split('.').all(is_number)
        && suffix.is_none_or(|suffix| suffix.split('.').all(is_suffix));
    if fits { Ok(text.to_owned()) } else { Err(wanted()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_dependency_is_installed_under_its_repository_path() {
        let released: Registry = "xpkg.crossplane.io/paved-road".parse().unwrap();
        assert_eq!(released.host(), "xpkg.crossplane.io");
        assert_eq!(released.installed_function(), "paved-road-function-paved-road");
        let here: Registry = "127.0.0.1:5000/acme/platform.tools".parse().unwrap();
        assert_eq!(here.function(), "127.0.0.1:5000/acme/platform.tools/function-paved-road");
        assert_eq!(here.installed_function(), "acme-platform-tools-function-paved-road");
    }

    #[test]
    fn registry_must_be_valid_for_crossplane() {
        for good in [
            Registry::DEFAULT,
            "xpkg.crossplane.io/paved-road",
            "127.0.0.1:5000/a/b",
            "ghcr.io/acme",
        ] {
            assert!(good.parse::<Registry>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "ghcr.io",
            "acme/x",
            "localhost/x",
            "ghcr.io/Acme",
            "ghcr.io//x",
            "ghcr.io/acme/",
            "https://ghcr.io/x",
        ] {
            let error = bad.parse::<Registry>().unwrap_err();
            assert!(error.contains("expected a registry and a path"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_release_is_a_semantic_version() {
        for good in ["v0.1.0", "v1.20.3", "v1.0.0-rc.1"] {
            assert!(release(good).is_ok(), "{good}");
        }
        for bad in
            ["", "1.0.0", "v1.0", "v1.0.0.0", "v01.0.0", "v1.0.0-", "v1.0.x", "latest", "v1.+0.0"]
        {
            assert!(release(bad).is_err(), "{bad}");
        }
    }
}
