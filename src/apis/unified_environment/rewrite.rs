//! The function of a site at the edge of CloudFront, which finds the file of a path.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::SiteKind;
use super::place::{NAMESPACE_READY, Place};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::SecretKeyRef;
use crate::models::aws::cloudfront::Function;
use crate::observe::NameRule;

pub(super) const FUNCTION: &str = "frontend-rewrite";
const CODE: &str = "frontend-rewrite-code";

/// The first schema revision with the function.
pub(super) const SINCE: u32 = 3;

/// The name of the Secret with the code in an environment's own namespace. It is the same in all
/// environments, so the rights of provider-kubernetes are limited to Secrets of this name.
const SECRET: &str = "frontend-rewrite";

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

/// Whether the function, or the Secret with its code, exists.
pub(super) fn exists(cx: &Composer<'_>) -> bool {
    cx.exists(FUNCTION) || cx.exists(CODE)
}

/// Composes the function, and the Secret with its code. The Secret has the code for both kinds, so a
/// new kind changes only the key. The function waits for the Secret: the provider would read a
/// missing Secret as an empty text, which CloudFront rejects.
pub(super) fn compose(
    kind: SiteKind,
    place: &Place,
    cx: &mut Composer<'_>,
) -> Result<Rewrite, Error> {
    let is_shared = cx.xr.namespace.is_some();
    let name = if is_shared { cx.xr.object_name(CODE) } else { SECRET.to_owned() };
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
            namespace: (!is_shared).then(|| place.namespace.clone()),
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
    Ok(Rewrite { arn: function.text(|function| function.arn.clone()) })
}
