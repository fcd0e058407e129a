//! The target of `paved init`: the claims API or the namespaced API of a kind.

use crossplane::suggest;
use function_paved_road::apis::{APIS, AnyApi, Flavour, Names};
use function_paved_road::manifests;
use serde_json::Value;

use crate::cli::{Init, group_of};
use crate::failure::Failure;

/// The claims API or the namespaced API of a kind, in a group.
pub(super) struct Target {
    pub(super) api: &'static dyn AnyApi,
    pub(super) flavour: Flavour,
    pub(super) group: String,
}

impl Target {
    /// The target of the flags. A kind that only one of the two APIs has selects this API.
    pub(super) fn find(args: &Init) -> Result<Self, Failure> {
        let wanted = args.kind.to_lowercase().replace(' ', "-");
        let is = |names: &Names| is_called(names, &wanted);
        let (api, own) = named(&args.kind)?;
        let flavour = args.flavour.unwrap_or(own);
        let info = api.info();
        let fits = match flavour {
            Flavour::Claims => is(&info.claim) || is(&info.composite),
            Flavour::Namespaced => is(&info.namespaced),
        };
        let group = group_of(flavour, args.group.as_deref())?;
        let target = Self { api, flavour, group };
        if !fits && info.name != wanted {
            let (kind, own) = (&args.kind, target.kind());
            return Err(Failure::Usage(format!(
                "--flavour {flavour}: {kind} belongs to the other API. Use {own}"
            )));
        }
        Ok(target)
    }

    /// The kind for users: the claim, or the namespaced composite.
    pub(super) fn kind(&self) -> &'static str {
        match self.flavour {
            Flavour::Claims => self.api.info().claim.kind,
            Flavour::Namespaced => self.api.info().namespaced.kind,
        }
    }

    /// `platform.acme.io/v1alpha1`
    pub(super) fn api_version(&self) -> String {
        manifests::api_version(&self.group)
    }

    /// The schema of `spec` for users, without Crossplane's own fields.
    pub(super) fn spec(&self) -> Value {
        let xrd = manifests::xrd(self.api, self.flavour, &self.group);
        let schema = &xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"].clone()
    }
}

/// The API with a kind, and the API style that has the kind. The name of an API means claims, also
/// with spaces as in a heading: `GPU workspace`.
pub(crate) fn named(kind: &str) -> Result<(&'static dyn AnyApi, Flavour), Failure> {
    let wanted = kind.to_lowercase().replace(' ', "-");
    let is = |names: &Names| is_called(names, &wanted);
    let claimed = APIS.iter().find(|api| api.info().name == wanted || is(&api.info().claim));
    let composed = APIS.iter().find(|api| is(&api.info().namespaced));
    let legacy = APIS.iter().find(|api| is(&api.info().composite));
    match (claimed, composed, legacy) {
        (Some(api), ..) | (None, None, Some(api)) => Ok((*api, Flavour::Claims)),
        (None, Some(api), _) => Ok((*api, Flavour::Namespaced)),
        (None, None, None) => Err(Failure::Usage(suggest::names("kind", kind, &known()))),
    }
}

/// Whether a kind has a name, in lowercase.
fn is_called(names: &Names, wanted: &str) -> bool {
    let own = [names.kind, names.plural, names.singular];
    own.iter().chain(names.short).any(|name| name.to_lowercase() == wanted)
}

/// The names of the APIs, then their kinds for users in both API styles.
fn known() -> Vec<&'static str> {
    let infos = || APIS.iter().map(|api| api.info());
    let mut kinds: Vec<&str> =
        infos().flat_map(|info| [info.claim.kind, info.namespaced.kind]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    infos().map(|info| info.name).chain(kinds).collect()
}
