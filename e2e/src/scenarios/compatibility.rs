//! The oldest supported Crossplane, from the installation to the deletion of the last claim.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use function_paved_road::apis::{APIS, Flavour};
use futures::future::try_join_all;

use super::{bulk, claims, deletion, failure, portrayed, refusals};
use crate::control_plane::{ControlPlane, CoreVersion, Options};
use crate::fixture::Fixture;

pub(super) async fn the_claims_flavour_works_on_crossplane_1_20(fixture: Fixture) -> Result<()> {
    let options = Options { core: CoreVersion::Old, ..fixture.plane.beside() };
    let plane =
        ControlPlane::start(&options).await.context("a control plane with Crossplane 1.20")?;
    let old = Fixture::set(Arc::new(plane), "compatibility").await?.with_rights().await?;
    let played = async {
        come_and_go(&old).await?;
        failure::a_refused_leaf_is_named_and_recovers(old.clone()).await?;
        refusals::api_server_rejects_invalid_specs(old.clone()).await
    };
    portrayed(played.await, &old, "compatibility").await
}

/// Creates one claim of each kind, checks all details for its owner, deletes it, and checks that no
/// object is left.
async fn come_and_go(fixture: &Fixture) -> Result<()> {
    let versions = fixture.admin.run(&["api-versions"]).await?;
    ensure!(!versions.contains("apiextensions.crossplane.io/v2"), "this is a newer Crossplane");
    let before = fixture.objects.everything().await?;
    let ready = APIS.iter().map(async |api| {
        let change = deletion::named(*api, Flavour::Claims);
        claims::becomes_ready(fixture, *api, Flavour::Claims, change).await
    });
    let environments = try_join_all(ready).await?;
    let gone = environments.iter().zip(APIS).map(async |(environment, api)| {
        let usages = deletion::usages(api.info().name);
        deletion::goes_by_its_usages(fixture, environment, &usages).await
    });
    try_join_all(gone).await?;
    bulk::no_object_is_left(fixture, &before).await
}
