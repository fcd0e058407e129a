//! `paved controller` as a platform team runs it, with the rights of `package/controller.yaml`. The
//! pods of the fake nodes run no programs, so replicas are processes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use crossplane::api_version::group_of;
use function_paved_road::apis::Flavour;
use serde_json::Value;
use xtask::{workspace, yaml};

use crate::control_plane::{Process, Program, ports};
use crate::eventually::eventually;
use crate::fixture::Fixture;

/// The name of the controller's namespace, service account and Lease.
const NAME: &str = "paved-controller";

/// The name that the API server gives the service account.
const ACCOUNT: &str = "system:serviceaccount:paved-controller:paved-controller";

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// An installed controller without replicas.
pub struct Controller {
    fixture: Fixture,
    /// The kubeconfig of its service account.
    kubeconfig: PathBuf,
}

/// A replica. Drop kills the process.
pub struct Replica(Process);

impl Controller {
    /// Creates the service account with its rights, without the policy on namespaces. Removes the
    /// Lease of earlier replicas, which counts their deletions.
    pub async fn install(fixture: &Fixture) -> Result<Self> {
        let manifest = yaml::read(&workspace::root().join("package/controller.yaml"))?;
        let is_replica = |object: &Value| {
            object["kind"] == "Deployment" || object["kind"] == "PodDisruptionBudget"
        };
        let is_omitted = |one: &Value| is_replica(one) || is_policy(one);
        let objects: Vec<Value> = manifest.into_iter().filter(|one| !is_omitted(one)).collect();
        fixture.plane.outer.apply(&objects).await?;
        if let Some(lease) = lease(fixture).await? {
            fixture.objects.delete(&lease).await?;
        }
        let account = fixture.admin.for_person(ACCOUNT);
        for (api, flavour) in fixture.apis() {
            let manifest = fixture.manifest(api.info().name, flavour)?;
            let names = match flavour {
                Flavour::Claims => &api.info().claim,
                Flavour::Namespaced => &api.info().namespaced,
            };
            let environments = format!("{}.{}", names.plural, group_of(&manifest));
            eventually("the controller has its rights", async || {
                Ok(fixture.can(&account, "delete", &environments).await?.then_some(()))
            })
            .await?;
        }
        let kubeconfig = fixture.plane.outer.account(NAME, NAME).await?;
        Ok(Self { fixture: fixture.clone(), kubeconfig })
    }

    /// Starts a replica and waits until the replica listens. `name` is unique in the scenario.
    pub async fn start(&self, name: &str) -> Result<Replica> {
        let port = ports::free()?;
        let program = self.program(format!("{}-{name}", self.fixture.namespace))?;
        let program = program
            .arg(format!("--listen=127.0.0.1:{port}"))
            // The identity in the Lease begins with the name of the host.
            .env("HOSTNAME", name);
        let workdir = self.fixture.plane.workdir();
        let replica = Process::start(program, workdir.folder(), &workdir.logs())?;
        replica.ready(START_TIMEOUT, async || ports::answers(port).await).await?;
        Ok(Replica(replica))
    }

    /// Installs the policy on namespaces.
    pub async fn protect(&self) -> Result<()> {
        self.fixture.plane.outer.apply(&policies()?).await
    }

    /// Removes the policy on namespaces.
    pub async fn unprotect(&self) -> Result<()> {
        for object in policies()? {
            self.fixture.objects.delete(&object).await?;
        }
        Ok(())
    }

    /// The output of `paved controller --dry-run`.
    pub async fn plan(&self) -> Result<String> {
        let program = self.program("plan".to_owned())?.arg("--dry-run");
        program.output(self.fixture.plane.folder()).await
    }

    /// The name of the replica that leads, once a replica does. `but` does not count.
    pub async fn leader(&self, but: Option<&str>) -> Result<String> {
        eventually("a replica leads", async || {
            let lease = lease(&self.fixture).await?.unwrap_or_default();
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let name = holder.split('_').next().filter(|name| !name.is_empty());
            Ok(name.filter(|name| Some(*name) != but).map(str::to_owned))
        })
        .await
    }

    fn program(&self, name: String) -> Result<Program> {
        let kubeconfig = self.kubeconfig.display().to_string();
        Ok(Program::new(name, &workspace::built("paved")?).args([
            "controller",
            "--namespace",
            NAME,
            "--kubeconfig",
            &kubeconfig,
        ]))
    }
}

impl Replica {
    /// Kills the replica at once, as `kill -9` does.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Asks the replica to end and waits for the end.
    pub async fn stop(&self) {
        self.0.stop().await;
    }

    /// The environments that the replica has deleted, by its log.
    pub fn deletions(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(self.0.log()).context("reading a controller's log")?;
        let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let deletions = entries.filter(|entry| {
            entry["message"].as_str().is_some_and(|message| message.starts_with("deleted"))
        });
        Ok(deletions.filter_map(|entry| entry["environment"].as_str().map(str::to_owned)).collect())
    }
}

/// The policy on namespaces and its binding.
fn policies() -> Result<Vec<Value>> {
    let manifest = yaml::read(&workspace::root().join("package/controller.yaml"))?;
    Ok(manifest.into_iter().filter(is_policy).collect())
}

fn is_policy(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy"))
}

/// The Lease of the replicas.
async fn lease(fixture: &Fixture) -> Result<Option<Value>> {
    fixture.objects.get("coordination.k8s.io/v1", "Lease", NAME, NAME).await
}
