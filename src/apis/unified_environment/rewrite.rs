//! The function of a site at the edge of CloudFront, which finds the file of a path.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::frontend::BUCKET;
use super::place::{NAMESPACE_READY, Place};
use super::{Frontend, SiteKind};
use crate::check::Refused;
use crate::compose::{Composition, NameRule};
use crate::error::Error;
use crate::models::SecretKeyRef;
use crate::models::aws::cloudfront::Function;

pub(super) const FUNCTION: &str = "frontend-rewrite";
pub(super) const CODE: &str = "frontend-rewrite-code";

/// The first schema revision with the function. Environments of earlier revisions answer each
/// missing file with the site's index.
const SINCE: u32 = 3;

/// The code for a site of the kind `app`.
const APP: &str = include_str!("rewrite.js");

impl SiteKind {
    /// Its value in a claim.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Pages => "pages",
        }
    }

    /// The key in the Secret with the code for sites of this kind.
    fn key(self) -> String {
        format!("{}.js", self.name())
    }

    fn code(self) -> String {
        APP.replacen("\"app\"", &format!("{:?}", self.name()), 1)
    }
}

/// The observed state of the function.
pub(super) struct Rewrite {
    pub arn: Option<String>,
}

/// Whether this call composes the function.
fn is_composed(cx: &Composition<'_>) -> bool {
    cx.brings(SINCE, &[FUNCTION, CODE])
}

/// Composes the function, for environments that have one. Its Secret has the code for both kinds, so a new kind changes only the
/// key. The provider then reads the new code immediately.
pub(super) fn compose(
    kind: SiteKind,
    place: &Place,
    cx: &mut Composition<'_>,
) -> Result<Option<Rewrite>, Error> {
    if !is_composed(cx) {
        return Ok(None);
    }
    let name = cx.xr.object_name(CODE);
    let entry = |kind: SiteKind| (kind.key(), STANDARD.encode(kind.code()));
    let data = BTreeMap::from([SiteKind::App, SiteKind::Pages].map(entry));
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": place.namespace},
        "type": "Opaque",
        "data": data,
    });
    cx.object(CODE, secret).public().needs(place.ready, NAMESPACE_READY).add()?;
    let function = Function {
        comment: Some(format!("Site of {}", cx.xr.name)),
        runtime: Some("cloudfront-js-2.0".to_owned()),
        publish: Some(true),
        code_secret_ref: Some(SecretKeyRef {
            name,
            namespace: cx.xr.namespace.is_none().then(|| place.namespace.clone()),
            key: kind.key(),
        }),
    };
    let external = cx.xr.cloud_name(NameRule::dns(64));
    let has_code = cx.is_ready(CODE);
    let function = cx
        .managed(FUNCTION, function)
        .external_name(external)
        .updatable(&["codeSecretRef.key"])
        .needs(has_code, "the Secret with its code")
        .add()?;
    Ok(Some(Rewrite { arn: function.text(|function| function.arn.clone()) }))
}

impl Frontend {
    /// Checks that the environment has the function that its kind of site needs.
    pub(super) fn check_kind(&self, cx: &Composition<'_>) -> Result<(), Refused> {
        if self.kind == SiteKind::App || is_composed(cx) {
            return Ok(());
        }
        let allowed = if cx.exists(BUCKET) {
            "app, because the environment is older than sites of several pages: create a new \
             environment"
                .to_owned()
        } else {
            format!(
                "app, because the Composition has a schemaRevision below {SINCE}: ask the platform \
                 team to upgrade the APIs"
            )
        };
        Err(Refused::new(self.kind.name(), allowed))
    }
}
