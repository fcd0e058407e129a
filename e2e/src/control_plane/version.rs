//! The supported versions of Crossplane and Kubernetes, and their differences.

use std::path::PathBuf;

use anyhow::{Context, Result};
use function_paved_road::apis::Flavour;
use xtask::guide::{self, OPERATIONS};
use xtask::tools::{self, Kubernetes, Tool};

/// The beginning of the command that installs Crossplane in the operator's guide.
const INSTALLING: &str = "helm upgrade --install crossplane crossplane-stable/crossplane ";

/// The version of Crossplane in a control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CoreVersion {
    /// The newest version.
    #[default]
    #[value(name = "2.4")]
    New,
    /// The version before.
    #[value(name = "2.3")]
    Previous,
    /// The oldest supported version. It supports claims, but no namespaced composites.
    #[value(name = "1.20")]
    Old,
}

impl CoreVersion {
    /// The only kind of APIs that it serves. None if it serves both kinds.
    pub fn flavour(self) -> Option<Flavour> {
        (self == Self::Old).then_some(Flavour::Claims)
    }

    /// Its program. `fast` selects the build with a shorter wait for Usages, if there is one.
    pub fn tool(self, fast: bool) -> &'static Tool {
        match (self, fast) {
            (Self::New, false) => &tools::CORE,
            (Self::New, true) => &tools::FAST_CORE,
            (Self::Previous, _) => &tools::CORE_2_3,
            (Self::Old, false) => &tools::OLD_CORE,
            (Self::Old, true) => &tools::FAST_OLD_CORE,
        }
    }

    /// The folder of its Go module with the chart, the CRDs and the webhooks.
    pub(super) fn source(self) -> Result<PathBuf> {
        let module = match self {
            Self::New | Self::Previous => "github.com/crossplane/crossplane/v2",
            Self::Old => "github.com/crossplane/crossplane",
        };
        Ok(tools::source(module, self.tool(false))?.join("cluster"))
    }

    /// Flags of `core init`. Only Crossplane 2 has inactive kinds of managed resources. All kinds
    /// are activated here.
    pub(super) fn init_flags(self) -> &'static [&'static str] {
        match self {
            Self::New | Self::Previous => &["--activation=*"],
            Self::Old => &[],
        }
    }

    /// Helm's flags from the operator's guide. Its `--set` flag is for Crossplane 2, which has
    /// circuit breakers.
    pub(super) fn helm_flags(self) -> Result<Vec<String>> {
        let guide = guide::text(OPERATIONS)?;
        let mut flags = flags(&guide)
            .with_context(|| format!("the operator's guide has no `{INSTALLING}…`"))?;
        if self == Self::Old {
            flags.retain(|flag| !flag.starts_with("--set="));
        }
        Ok(flags)
    }
}

/// The version of Kubernetes in a control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum KubernetesVersion {
    /// The newest version.
    #[value(name = "1.37")]
    V1_37,
    /// The version before.
    #[value(name = "1.36")]
    V1_36,
    /// The oldest version that Kubernetes supports.
    #[value(name = "1.35")]
    V1_35,
    /// The version of every run.
    #[default]
    #[value(name = "1.34")]
    V1_34,
}

impl KubernetesVersion {
    /// Its programs.
    pub(super) fn tools(self) -> &'static Kubernetes {
        match self {
            Self::V1_37 => &tools::KUBERNETES_1_37,
            Self::V1_36 => &tools::KUBERNETES_1_36,
            Self::V1_35 => &tools::KUBERNETES_1_35,
            Self::V1_34 => &tools::KUBERNETES,
        }
    }
}

/// The Helm flags with which a guide installs Crossplane's chart, split as by a shell.
fn flags(guide: &str) -> Option<Vec<String>> {
    let (_, command) = guide.split_once(INSTALLING)?;
    let command = command.split("\n```").next()?.replace("\\\n", " ").replace('\'', "");
    Some(command.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn crossplane_is_installed_as_the_guide_says() {
        let guide = format!(
            "```console\n{INSTALLING}--namespace=a \\\n  --set='args={{--b=1,--c=2}}'\n```\nand on"
        );
        assert_eq!(flags(&guide).unwrap(), ["--namespace=a", "--set=args={--b=1,--c=2}"]);
        let all = CoreVersion::New.helm_flags().unwrap();
        let of_old = CoreVersion::Old.helm_flags().unwrap();
        assert_eq!(all.len(), of_old.len() + 1, "{all:?}");
    }

    #[test]
    fn version_is_called_by_that_of_its_tool() {
        for core in CoreVersion::value_variants() {
            let name = core.to_possible_value().unwrap().get_name().to_owned();
            let version = core.tool(false).version;
            assert!(version.starts_with(&format!("v{name}.")), "{version} is called {name}");
        }
        for kubernetes in KubernetesVersion::value_variants() {
            let name = kubernetes.to_possible_value().unwrap().get_name().to_owned();
            let version = kubernetes.tools().api_server.version;
            assert!(version.starts_with(&format!("v{name}.")), "{version} is called {name}");
        }
    }

    #[test]
    fn versions_of_the_flags_are_those_of_the_list() {
        let minor = |program: &str| xtask::versions::read().unwrap().minor(program, None).unwrap();
        let names = |values: Vec<Option<clap::builder::PossibleValue>>| -> Vec<String> {
            values.into_iter().map(|value| value.unwrap().get_name().to_owned()).collect()
        };
        let core = CoreVersion::value_variants().iter().map(ValueEnum::to_possible_value);
        assert_eq!(names(core.collect()), minor("Crossplane"));
        let kubernetes = KubernetesVersion::value_variants().iter();
        let kubernetes = kubernetes.map(ValueEnum::to_possible_value);
        assert_eq!(names(kubernetes.collect()), minor("Kubernetes"));
    }
}
