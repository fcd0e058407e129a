//! Environments that scenarios share. Most checks of a ready environment do not need their own
//! environment.

use std::sync::atomic::Ordering;

use anyhow::Result;
use crossplane::json::merge_patch;
use function_paved_road::apis::{AnyApi, Flavour};
use futures::future::{try_join, try_join_all};

use super::{Stage, is_part};
use crate::environment::Environment;
use crate::examples;

impl Stage {
    /// Every example and every managed cluster for each kind of API, ready, to observe them during
    /// other changes. The claim's virtual environment has add-ons, which no other environment can
    /// have at that time.
    pub async fn standing(&self) -> Result<Vec<Environment>> {
        let (examples, clusters) =
            try_join(self.standing_examples(), self.standing_clusters()).await?;
        for (api, flavour, environment) in &examples {
            let has_add_ons =
                (api.info().name, *flavour) == ("virtual-environment", Flavour::Claims);
            if has_add_ons && !is_part(&environment.object().await?, "argocd") {
                self.add_ons().await?.join(environment).await?;
            }
        }
        let examples = examples.into_iter().map(|(_, _, environment)| environment);
        Ok(examples.chain(clusters.into_iter().map(|(_, _, environment)| environment)).collect())
    }

    /// The examples among the shared environments. They select Compositions of their provider.
    pub async fn standing_examples(
        &self,
    ) -> Result<Vec<(&'static dyn AnyApi, Flavour, Environment)>> {
        let stage = self.standing_stage().await?;
        let standing = self.apis().map(async |(api, flavour)| {
            let info = api.info();
            let mut change = examples::beside(info.name, flavour);
            merge_patch(&mut change, examples::selecting(flavour, info.provider));
            let environment = stage.example(info.name, flavour, change)?;
            anyhow::Ok((api, flavour, stage.stands(environment).await?))
        });
        try_join_all(standing).await
    }

    /// The managed clusters among the shared environments, by type.
    pub async fn standing_clusters(&self) -> Result<Vec<(&'static str, Flavour, Environment)>> {
        let stage = self.standing_stage().await?;
        let standing = self.clusters().map(async |(cluster, flavour)| {
            anyhow::Ok((cluster, flavour, stage.stands(stage.cluster(cluster, flavour)?).await?))
        });
        try_join_all(standing).await
    }

    /// How many shared environments are applied already.
    pub async fn applied_of_standing(&self) -> Result<usize> {
        Ok(self.standing_stage().await?.environments().await?.len())
    }

    /// The stage of the shared environments.
    pub(super) async fn standing_stage(&self) -> Result<Self> {
        self.looks_at_standing.store(true, Ordering::Relaxed);
        let stage = Self::set(self.plane.clone(), "standing").await?.with_rights().await?;
        Ok(Self { freed: self.freed.clone(), ..stage })
    }

    /// Applies an environment unless it exists, and waits until it is ready.
    async fn stands(&self, environment: Environment) -> Result<Environment> {
        let turn = self.plane.standing.lock().await;
        if environment.found().await?.is_none() {
            environment.apply().await?;
        }
        drop(turn);
        environment.ready().await?;
        Ok(environment)
    }
}
