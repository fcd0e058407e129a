//! The guarantees to users, tested on a real control plane. Each scenario has its own namespace.
//! Most scenarios run in parallel. Scenarios that stop or upgrade shared components run alone
//! afterwards, or on another control plane.

mod bulk;
mod chart;
mod claims;
mod cli;
mod compatibility;
mod day_two;
mod deletion;
mod failure;
mod figures;
mod guides;
mod helm;
mod inside;
mod install;
mod lifecycle;
mod namespaces;
mod operations;
mod portal;
mod quiet;
mod refusals;
mod restore;
mod rights;
mod shared_database;
mod up;
mod upgrade;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use function_paved_road::apis::Flavour;
use futures::future::{LocalBoxFuture, try_join, try_join_all};
use futures::{StreamExt, stream};

use crate::control_plane::{
    CircuitBreakers, ControlPlane, CoreVersion, KubernetesVersion, Options,
};
use crate::fixture::Fixture;
use crate::matrix;
use crate::signals;

/// How many scenarios run in parallel. They mostly wait: Crossplane checks only every 30 s whether
/// the resource that a Usage waits for is gone.
const SIDE_BY_SIDE: usize = 8;

/// How many resources may be overlooked in all, because they were created in the same second in
/// which their environment was deleted.
const MOST_OVERLOOKED: usize = 4;

/// The longest that a scenario may take.
const LIMIT: Duration = Duration::from_mins(30);

/// A scenario. Its name states the guarantee.
struct Scenario {
    name: &'static str,
    when: When,
    /// Whether it belongs to the core set. Each API is created, changed, rejected, failed and
    /// deleted as a claims API and as a namespaced API. The set also covers rights, the portal, the
    /// upgrade and the documented commands.
    is_core: bool,
    /// Whether it also runs on the oldest Crossplane. It then needs only claims.
    is_old: bool,
    play: fn(Fixture) -> LocalBoxFuture<'static, Result<()>>,
}

/// When a scenario runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// In parallel with others.
    Together,
    /// After the parallel scenarios, one at a time, in this order.
    Alone,
    /// On another control plane, one at a time, in parallel with the `Alone` scenarios. It stops
    /// components that others need, and needs none of their environments.
    Elsewhere,
    /// Alone, and only if its name is given, because it measures more than it proves.
    Asked,
}

macro_rules! scenario {
    (core $($rest:tt)+) => {
        Scenario { is_core: true, ..scenario!($($rest)+) }
    };
    (old $($rest:tt)+) => {
        Scenario { is_old: true, ..scenario!($($rest)+) }
    };
    ($group:ident :: $name:ident) => {
        scenario!($group::$name, Together)
    };
    ($group:ident :: $name:ident, $when:ident) => {
        Scenario {
            name: concat!(stringify!($group), "::", stringify!($name)),
            when: When::$when,
            is_core: false,
            is_old: false,
            play: |fixture| Box::pin($group::$name(fixture)),
        }
    };
}

/// Every scenario.
const SCENARIOS: &[Scenario] = &[
    // Long scenarios come first, for a short end. Scenarios that start another control plane are
    // apart: three control planes at once are too many for two processors.
    scenario!(compatibility::the_claims_flavour_works_on_crossplane_1_20),
    // From here on, the shared environments exist.
    scenario!(core old day_two::killed_function_delays_no_environment),
    scenario!(core portal::people_use_the_pages),
    scenario!(restore::restored_environments_find_their_resources),
    scenario!(install::a_team_has_apis_in_a_group_of_its_own),
    scenario!(old deletion::half_made_environment_is_deleted_whole),
    scenario!(core old deletion::refused_environment_is_deleted_whole),
    scenario!(core deletion::composite_deleted_first_leaves_no_resource),
    scenario!(old deletion::orphaned_resource_stays_in_the_cloud),
    scenario!(old deletion::site_with_retained_files_keeps_its_bucket),
    scenario!(core install::packages_bring_the_providers_that_they_need),
    scenario!(core install::packages_are_pushed_as_the_readme_says),
    scenario!(core old inside::the_app_lands_inside),
    scenario!(old inside::an_app_taken_out_of_a_claim_is_uninstalled),
    scenario!(inside::charts_of_one_name_and_version_are_not_mixed),
    scenario!(old inside::a_virtual_cluster_that_stopped_answering_can_go),
    scenario!(old inside::stuck_resource_is_left_behind_by_hand),
    scenario!(day_two::resource_deleted_by_hand_comes_back),
    scenario!(old day_two::resource_vanished_from_a_cloud_comes_back),
    scenario!(old day_two::resource_upgraded_by_hand_stays_upgraded),
    scenario!(core old failure::a_refused_leaf_is_named_and_recovers),
    scenario!(old failure::common_cause_ends_the_wait_with_its_remediation),
    scenario!(core old upgrade::environments_survive_the_function_first),
    scenario!(core old refusals::api_server_rejects_invalid_specs),
    scenario!(core refusals::object_of_another_owner_stays_as_it_is),
    scenario!(core old refusals::change_of_a_fixed_field_is_rejected),
    scenario!(core old refusals::rejected_edit_keeps_all_resources),
    scenario!(core rights::role_gives_exactly_its_rights),
    scenario!(core rights::operator_manages_all_objects_except_secrets),
    scenario!(core rights::a_user_reaches_no_other_namespace_and_no_part),
    scenario!(core rights::only_crossplane_writes_its_references),
    scenario!(core portal::two_tenants_make_watch_and_delete),
    scenario!(core old cli::the_documented_pipeline_ends_with_a_site),
    scenario!(core old upgrade::environments_survive_the_apis_first),
    scenario!(upgrade::environments_survive_the_adoption_by_the_chart),
    scenario!(old upgrade::rolled_back_environments_keep_all_resources),
    scenario!(old cli::a_pipeline_applies_waits_and_gets_its_outputs),
    scenario!(old cli::slow_resource_has_not_failed),
    scenario!(core old cli::a_refused_part_ends_the_wait_and_is_named),
    scenario!(old cli::a_refused_change_ends_the_wait_and_is_named),
    scenario!(old cli::recovered_resource_ends_the_wait_ready),
    scenario!(old cli::a_wait_ends_when_its_time_is_over),
    scenario!(old cli::an_invalid_spec_ends_the_wait_at_once),
    scenario!(old cli::rejected_claim_prevents_the_whole_apply),
    scenario!(old cli::another_managers_fields_are_not_taken_by_accident),
    scenario!(core old cli::kubectl_fields_follow_paved_apply),
    scenario!(old cli::two_pipelines_may_apply_at_once),
    scenario!(cli::denied_user_gets_the_reason),
    scenario!(old cli::deleted_environment_fails_the_wait),
    scenario!(cli::interrupted_wait_keeps_applied_claims),
    scenario!(old cli::blocked_deletion_names_the_blocker),
    scenario!(core old claims::every_claim_becomes_ready),
    scenario!(core claims::every_namespaced_composite_becomes_ready),
    scenario!(core install::compositions_are_selected_by_their_provider),
    scenario!(core old namespaces::claims_namespace_is_deleted_by_kubectl),
    scenario!(namespaces::unprotected_namespace_is_never_deleted),
    scenario!(core up::it_listens_on_loopback_alone),
    scenario!(core old lifecycle::every_environment_stops_and_starts),
    scenario!(figures::each_becomes_ready_by_itself, Asked),
    scenario!(figures::two_thousand_are_listed_and_waited_for, Asked),
    scenario!(figures::streams_hear_of_every_change, Asked),
    scenario!(old bulk::a_hundred_environments_come_and_go, Alone),
    scenario!(old quiet::idle_environment_causes_no_write, Alone),
    scenario!(old day_two::a_provider_that_was_down_catches_up, Alone),
    scenario!(day_two::new_settings_leave_running_resources_alone, Alone),
    scenario!(day_two::new_tags_and_publishers_reach_running_resources, Alone),
    scenario!(day_two::new_networks_reach_running_resources, Alone),
    scenario!(day_two::wrong_settings_change_no_running_resource, Alone),
    scenario!(old day_two::restarted_crossplane_recreates_no_resource, Alone),
    // After a downgrade of the function, Crossplane 1.20 does not reject the Configurations that
    // need a later function.
    scenario!(core upgrade::in_whatever_order_nothing_is_made_anew, Alone),
    // From here on, the shared examples are changed.
    scenario!(core old day_two::updatable_field_reaches_its_resource, Alone),
    scenario!(core old deletion::ready_environment_is_deleted_whole, Alone),
    scenario!(old cli::a_wait_outlives_the_api_server, Elsewhere),
    scenario!(portal::the_pages_outlive_the_api_server, Elsewhere),
    scenario!(old day_two::an_edit_that_no_function_answers_is_not_ready, Elsewhere),
    // A controller deletes expired environments of all namespaces.
    scenario!(core old lifecycle::expired_environment_is_stopped_then_deleted, Elsewhere),
    scenario!(old lifecycle::late_renewal_prevents_a_deletion, Elsewhere),
    scenario!(core old lifecycle::unseen_renewal_prevents_a_deletion, Elsewhere),
    scenario!(core old lifecycle::killed_controller_is_replaced_and_deletes_once, Elsewhere),
    scenario!(old lifecycle::wrong_settings_prevent_no_stop, Elsewhere),
    scenario!(old lifecycle::paused_environment_is_shown_and_not_deleted, Elsewhere),
    scenario!(old lifecycle::environment_from_git_is_stopped_and_not_deleted, Elsewhere),
    // A controller and a policy protect the namespaces of all scenarios.
    scenario!(core namespaces::protected_namespace_is_deleted_by_paved, Elsewhere),
    scenario!(namespaces::killed_deletions_leave_no_resource, Elsewhere),
    // From here on, each needs a control plane of its own again. There is room for it now.
    scenario!(core operations::its_documented_commands_run, Elsewhere),
    scenario!(chart::running_environments_outlive_every_change, Elsewhere),
    scenario!(shared_database::lost_admin_option_is_named_and_repaired, Elsewhere),
    scenario!(up::it_runs_until_ctrl_c, Elsewhere),
    scenario!(up::it_stays_in_the_background_until_down, Elsewhere),
];

/// Flags of `cargo xtask e2e`.
#[derive(clap::Args)]
pub struct Args {
    /// Parts of scenario names [default: all scenarios].
    only: Vec<String>,
    /// Run only the core set, which CI runs for every change.
    #[arg(long, conflicts_with = "only")]
    core: bool,
    /// Version of Crossplane. On 1.20, the scenarios of the claims API run.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t)]
    core_version: CoreVersion,
    /// Version of Kubernetes.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t)]
    kubernetes: KubernetesVersion,
    /// Record in SUPPORT.md that all scenarios hold on this version of Crossplane.
    #[arg(long, conflicts_with_all = ["only", "core"])]
    matrix: bool,
    /// Seconds of one round of a fake cloud. 0 makes clouds instant.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=600))]
    pace: u16,
    /// Folder with packages of `cargo xtask package` [default: build them from the workspace].
    #[arg(long, value_name = "FOLDER")]
    packages: Option<PathBuf>,
    /// Keep the folder with the logs.
    #[arg(long)]
    keep: bool,
    /// Folder to copy the logs to if a scenario fails.
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
}

/// Starts a control plane and runs the scenarios on it. An interrupted run leaves no processes or
/// files behind.
pub async fn e2e(args: &Args) -> Result<()> {
    let told = signals::told()?;
    tokio::select! {
        done = run(args) => done,
        () = told => Err(anyhow!("interrupted")),
    }
}

async fn run(args: &Args) -> Result<()> {
    let pace = Duration::from_secs(args.pace.into());
    // The full set tests an unmodified Crossplane.
    let options = Options {
        core: args.core_version,
        kubernetes: args.kubernetes,
        fast: args.core,
        packages: args.packages.clone(),
        keep: args.keep,
        logs: args.logs.clone(),
        pace,
        ..Options::default()
    };
    let plane = Arc::new(ControlPlane::start(&options).await?);
    println!("logs are in {}", plane.folder().display());
    let played = play(plane.clone(), args).await;
    if played.is_err() {
        println!("{}", left_logs(&plane, "control-plane"));
    }
    played
}

/// Runs the chosen scenarios. Prints a line for each, and how many hold. At the end, repeats the
/// details of failures, because other lines separate them.
async fn play(plane: Arc<ControlPlane>, args: &Args) -> Result<()> {
    let only = &args.only;
    let is_chosen = |scenario: &&Scenario| {
        let is_named = only.iter().any(|part| scenario.name.contains(part));
        let is_of_set = scenario.when != When::Asked && (scenario.is_core || !args.core);
        (scenario.is_old || args.core_version != CoreVersion::Old)
            && (is_named || only.is_empty() && is_of_set)
    };
    let chosen = SCENARIOS.iter().filter(is_chosen);
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        bail!(
            "no scenario's name contains {}; there are:\n  {}",
            only.join(" or "),
            names.join("\n  ")
        );
    }
    let begin = Instant::now();
    let of =
        |when| chosen.iter().copied().filter(|scenario| scenario.when == when).collect::<Vec<_>>();
    let mut outcomes = perform_all(&plane, of(When::Together), SIDE_BY_SIDE).await;
    let here = async { Ok(perform_all(&plane, of(When::Alone), 1).await) };
    let (here, elsewhere) = try_join(here, perform_elsewhere(&plane, of(When::Elsewhere))).await?;
    outcomes.extend(here.into_iter().chain(elsewhere));
    outcomes.extend(perform_all(&plane, of(When::Asked), 1).await);
    let freed: usize = outcomes.iter().map(|outcome| outcome.freed).sum();
    let failed: Vec<_> =
        outcomes.into_iter().filter_map(|outcome| Some((outcome.name, outcome.failure?))).collect();
    let (count, time) = (chosen.len(), begin.elapsed().as_secs());
    println!("{} of {count} scenarios hold, {time} s{}", count - failed.len(), by_hand(freed));
    if failed.is_empty() {
        ensure!(
            freed <= MOST_OVERLOOKED,
            "{freed} resources were overlooked; at most {MOST_OVERLOOKED} may be"
        );
        if args.matrix {
            matrix::record(args.core_version.tool(false).version, count)?;
        }
        return Ok(());
    }
    for (name, failure) in &failed {
        println!("\n{name} does not:\n{failure}");
    }
    let told = failed.iter().map(|(name, failure)| format!("\n  {name}: {}", reason(failure)));
    bail!("these do not:{}", told.collect::<String>())
}

/// The first line of a failure.
fn reason(failure: &str) -> &str {
    failure.lines().next().unwrap_or_default().trim()
}

/// The result of a scenario.
struct Outcome {
    name: &'static str,
    /// The reason and the state of its environments. None if it holds.
    failure: Option<String>,
    /// How many resources were deleted by hand.
    freed: usize,
}

/// Runs the scenarios, at most `at_once` in parallel.
async fn perform_all(
    plane: &Arc<ControlPlane>,
    scenarios: Vec<&'static Scenario>,
    at_once: usize,
) -> Vec<Outcome> {
    let played = stream::iter(scenarios).map(|scenario| perform(plane.clone(), scenario));
    played.buffer_unordered(at_once).collect().await
}

/// Runs the scenarios on a control plane of their own.
async fn perform_elsewhere(
    plane: &ControlPlane,
    scenarios: Vec<&'static Scenario>,
) -> Result<Vec<Outcome>> {
    if scenarios.is_empty() {
        return Ok(Vec::new());
    }
    let other = ControlPlane::start(&plane.beside()).await.context("another control plane")?;
    let other = Arc::new(other);
    let outcomes = perform_all(&other, scenarios, 1).await;
    if outcomes.iter().any(|outcome| outcome.failure.is_some()) {
        println!("{}", left_logs(&other, "elsewhere"));
    }
    Ok(outcomes)
}

/// Runs a scenario. Prints a line, and the details of a failure.
async fn perform(plane: Arc<ControlPlane>, scenario: &Scenario) -> Outcome {
    let begin = Instant::now();
    let (failure, freed) = match set(plane, scenario).await {
        Ok(fixture) => (failure(&fixture, scenario).await, fixture.freed()),
        Err(error) => (Some(format!("    {error:#}")), 0),
    };
    let verdict = if failure.is_none() { "ok" } else { "FAILED" };
    let verdict = format!("{verdict}{}", by_hand(freed));
    println!("{:60} {verdict:6} {:5.1} s", scenario.name, begin.elapsed().as_secs_f64());
    if let Some(failure) = &failure {
        println!("{failure}");
    }
    Outcome { name: scenario.name, failure, freed }
}

async fn set(plane: Arc<ControlPlane>, scenario: &Scenario) -> Result<Fixture> {
    Fixture::set(plane, scenario.name).await?.with_rights().await
}

/// Runs a scenario. Returns the reason of a failure, with the state of the environments that the
/// scenario created or used.
async fn failure(fixture: &Fixture, scenario: &Scenario) -> Option<String> {
    let error = in_time(fixture, scenario).await.err()?;
    Some(format!("    {error:#}\n{}", fixture.portrait().await))
}

/// Runs a scenario within its time limit. After an `Alone` scenario, restores the platform team's
/// Settings.
async fn in_time(fixture: &Fixture, scenario: &Scenario) -> Result<()> {
    let before = if scenario.when == When::Alone { Some(fixture.settings().await?) } else { None };
    let played = tokio::time::timeout(LIMIT, listened_to(fixture, scenario)).await;
    let played = played.unwrap_or_else(|_| Err(anyhow!("took longer than {} s", LIMIT.as_secs())));
    let Some(before) = before else { return played };
    played.and(fixture.put_settings(&before).await.context("restoring the Settings"))
}

/// Adds to a failure the state of a scenario's own control plane, and the place of its logs.
async fn portrayed(result: Result<()>, fixture: &Fixture, name: &str) -> Result<()> {
    let Err(error) = result else { return Ok(()) };
    let logs = left_logs(&fixture.plane, name);
    bail!("{error:#}\n{}{logs}", fixture.portrait().await)
}

/// The place of a control plane's logs, or the reason why they are missing.
fn left_logs(plane: &ControlPlane, name: &str) -> String {
    plane.leave_logs(name).unwrap_or_else(|error| format!("{error:#}"))
}

/// A line's suffix for resources that were deleted by hand. Empty if there were none.
fn by_hand(freed: usize) -> String {
    if freed == 0 {
        String::new()
    } else {
        format!(", {freed} overlooked resources deleted by hand")
    }
}

/// Runs a scenario and deletes all its environments. Fails if one of Crossplane's circuit breakers
/// opened meanwhile.
async fn listened_to(fixture: &Fixture, scenario: &Scenario) -> Result<()> {
    let before = CircuitBreakers::from_plane(&fixture.plane).await?;
    (scenario.play)(fixture.clone()).await?;
    fixture.clear().await.context("deleting the scenario's environments")?;
    CircuitBreakers::from_plane(&fixture.plane).await?.have_not_opened_since(&before)
}

/// Runs in parallel for each kind of API that this Crossplane serves.
async fn in_each_flavour(
    fixture: &Fixture,
    play: impl AsyncFn(Flavour) -> Result<()>,
) -> Result<()> {
    try_join_all(fixture.flavours().into_iter().map(|flavour| play(flavour))).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenarios_name_makes_a_namespace() {
        for Scenario { name, .. } in SCENARIOS {
            assert!("e2e-".len() + name.len() <= 63, "{name} is too long");
        }
    }
}
