//! Changes of an environment's lifecycle by its user: renewals, stops and starts.
//!
//! A request is an annotation on the object that the user applied, so that a synchronization from
//! Git does not remove it. [`Subject`] computes the effect of a request before it is sent, and
//! refuses a request that the function would ignore.

mod refusal;
mod times;

use function_paved_road::apis::{self, Flavour};
use function_paved_road::lifecycle::{
    CannotStop, RENEWED_AT, RENEWED_FOR, Requests, SKEW, STARTED_AT, STOPPED_AT, Span,
};
use function_paved_road::power::PowerState;
use function_paved_road::settings::Settings;
use function_paved_road::status::StopReason;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::{Cluster, Found, Kind, lacks_rights, refusal};
use crate::environment::{Environment, Lifecycle, spell};
use crate::git::{Applier, applier};
pub use refusal::Refusal;
use times::{after, begin_of, covering, end_of};

/// The field manager of requests. `paved apply` has another one, and removes fields of its own that
/// a file does not have.
pub const MANAGER: &str = "paved-lifecycle";

/// The expiry that a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// This time from now.
    After(Span),
    /// A point in time.
    At(Timestamp),
    /// The longest time from now that Settings allow.
    Maximum,
}

/// A change of an environment's lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A renewal.
    Renew {
        /// Time of the renewal.
        at: Timestamp,
        /// Length of the renewal.
        span: Span,
    },
    /// A stop at this time.
    Stop(Timestamp),
    /// A start at this time.
    Start(Timestamp),
    /// No time to live any more.
    Keep,
}

/// The effect of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The change to send; `None` if the environment expires later anyway.
    pub change: Option<Change>,
    /// Time of the expiry afterwards.
    pub expires_at: Timestamp,
    /// The maximum in Settings, if it shortened the renewal.
    pub capped_by: Option<Span>,
}

/// An environment with a lifecycle that a user changes.
pub struct Subject {
    /// The environment.
    pub environment: Environment,
    kind: Kind,
    object: DynamicObject,
    requests: Requests,
    now: Timestamp,
}

impl Subject {
    /// Reads an environment. `now` is this machine's clock.
    pub fn new(found: Found, now: Timestamp) -> Self {
        let Found { kind, object, .. } = found;
        let environment = Environment::from_object(&object);
        let annotation = |name: &str| {
            let annotations = object.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(name)).map(String::as_str)
        };
        let requests = Requests::read(annotation, now);
        // Whole seconds, as the status has them.
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Self { environment, kind, object, requests, now }
    }

    /// Checks that a request has an effect at this time.
    fn check(&self) -> Result<(), Refusal> {
        let environment = &self.environment;
        if environment.deleted.is_some() {
            return Err(Refusal::Deleting);
        }
        if environment.is_paused() {
            return Err(match self.kind.flavour() {
                Flavour::Claims => Refusal::PausedClaim,
                Flavour::Namespaced => Refusal::PausedComposite,
            });
        }
        if environment.is_composed() && environment.lifecycle.is_none() {
            return Err(Refusal::NoLifecycle);
        }
        Ok(())
    }

    /// A renewal, and its effect.
    ///
    /// # Errors
    /// The environment does not expire, or the expiry is not allowed.
    pub fn renew(&self, expiry: Expiry) -> Result<Renewal, Refusal> {
        self.check()?;
        let Lifecycle { expires_at, maximum, .. } = self.lifecycle().ok_or(Refusal::NoLifecycle)?;
        let before = expires_at.ok_or(Refusal::NoTtl)?.max(self.renewed_until(*maximum));
        let (asked, end) = match expiry {
            Expiry::After(span) => (span, None),
            Expiry::At(end) => {
                let span = covering(end.duration_since(self.now));
                (span.ok_or(Refusal::NotAhead(end))?, Some(end))
            }
            Expiry::Maximum => (maximum.ok_or(Refusal::NoMaximum)?, None),
        };
        let capped_by = maximum.filter(|maximum| asked.exceeds(*maximum));
        let span = capped_by.unwrap_or(asked);
        // A span has whole units, so a point in time is the end of a span that begins before now.
        let begin = end.filter(|_| capped_by.is_none()).and_then(|end| begin_of(end, span));
        let at = after(begin.unwrap_or(self.now), [self.requests.renewed.map(|(at, _)| at)]);
        let until = end_of(at, span).ok_or(Refusal::NoTtl)?;
        let change = (until > before).then_some(Change::Renew { at, span });
        Ok(Renewal { change, expires_at: until.max(before), capped_by })
    }

    /// A stop; `None` if the environment is stopped already.
    ///
    /// # Errors
    /// The API cannot stop this environment.
    pub fn stop(&self) -> Result<Option<Change>, Refusal> {
        self.check()?;
        if let Some(reason) = cannot_stop(&self.environment, &self.object) {
            return Err(Refusal::CannotStop(reason));
        }
        let is_stopped = self.lifecycle().is_some_and(|lifecycle| {
            lifecycle.is_stop_wanted() && self.requests.started < lifecycle.stopped_at
        });
        Ok((!is_stopped).then(|| Change::Stop(self.newest())))
    }

    /// A start. It also renews the environment by its time to live.
    ///
    /// # Errors
    /// A request has no effect at this time.
    pub fn start(&self) -> Result<Change, Refusal> {
        self.check()?;
        Ok(Change::Start(self.newest()))
    }

    /// Whether the environment runs, as far as its status shows. A machine that stopped itself is
    /// noticed up to ten minutes later.
    pub fn is_running(&self) -> bool {
        self.environment.power == Some(PowerState::Running)
            && self.requests.stopped <= self.requests.started
            && self.lifecycle().is_some_and(|lifecycle| lifecycle.stopped_at.is_none())
    }

    /// The removal of the time to live; `None` if the claim says `never` already.
    ///
    /// # Errors
    /// Settings have a maximum.
    pub fn keep(&self) -> Result<Option<Change>, Refusal> {
        self.check()?;
        if let Some(maximum) = self.lifecycle().and_then(|lifecycle| lifecycle.maximum) {
            return Err(Refusal::Maximum(maximum));
        }
        let ttl = self.object.data.pointer("/spec/lifecycle/ttl").and_then(Value::as_str);
        Ok((ttl != Some("never")).then_some(Change::Keep))
    }

    /// The tool that applies the environment repeatedly, for example from Git.
    pub fn applier(&self) -> Option<Applier> {
        applier(&self.object.metadata)
    }

    /// Whether a later expiry starts the environment: it is stopped only because it expired.
    pub fn is_started_by_renewal(&self) -> bool {
        self.lifecycle().is_some_and(|lifecycle| lifecycle.stop_reason == Some(StopReason::Expired))
    }

    /// Sends a change. Returns the environment as the API server has it then.
    ///
    /// # Errors
    /// The cluster does not answer, or rejects the change.
    pub async fn send(&self, cluster: &Cluster, change: Change) -> Result<Found, Failure> {
        self.read_answer(self.patch(&cluster.client, change).await, cluster, change)
    }

    fn read_answer(
        &self,
        answer: kube::Result<DynamicObject>,
        cluster: &Cluster,
        change: Change,
    ) -> Result<Found, Failure> {
        let title = self.environment.title();
        match answer {
            Ok(object) => Ok(Found { kind: self.kind.clone(), object, listed: None }),
            Err(kube::Error::Api(status))
                if [400, 403, 422].contains(&status.code) && !lacks_rights(&status) =>
            {
                Err(refusal(&title, &status))
            }
            Err(error) => Err(cluster.explain(&error, &format!("{} {title}", change.verb()))),
        }
    }

    /// Sends a change if the environment still has the resource version that was read. `None` if
    /// another client wrote in between.
    ///
    /// # Errors
    /// The cluster does not answer, or rejects the change.
    pub async fn send_to_version(
        &self,
        cluster: &Cluster,
        change: Change,
    ) -> Result<Option<Found>, Failure> {
        let mut patch = change.patch();
        patch["metadata"]["resourceVersion"] = json!(self.object.metadata.resource_version);
        match self.write(&cluster.client, &patch).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            answer => self.read_answer(answer, cluster, change).map(Some),
        }
    }

    /// Sends a change with the rights of this client. Returns the object as the API server has it
    /// then.
    ///
    /// # Errors
    /// The API server does not answer, or rejects the change.
    pub async fn patch(&self, client: &Client, change: Change) -> kube::Result<DynamicObject> {
        self.write(client, &change.patch()).await
    }

    async fn write(&self, client: &Client, patch: &Value) -> kube::Result<DynamicObject> {
        let api = self.kind.api(client, Some(&self.environment.namespace));
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::default()
        };
        api.patch(&self.environment.name, &params, &Patch::Merge(patch)).await
    }

    /// The object as it was read.
    pub fn object(&self) -> &DynamicObject {
        &self.object
    }

    /// The kind of the environment.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The environment as it was read.
    pub fn into_found(self) -> Found {
        Found { kind: self.kind, object: self.object, listed: None }
    }

    fn lifecycle(&self) -> Option<&Lifecycle> {
        self.environment.lifecycle.as_ref()
    }

    /// The end of the last renewal, which the status may not have yet.
    fn renewed_until(&self, maximum: Option<Span>) -> Timestamp {
        let renewed = self.requests.renewed.and_then(|(at, span)| {
            let span = maximum.filter(|maximum| span.exceeds(*maximum)).unwrap_or(span);
            end_of(at, span)
        });
        renewed.unwrap_or(Timestamp::MIN)
    }

    /// Now, or a moment after all earlier requests: the latest one decides, and clocks differ.
    fn newest(&self) -> Timestamp {
        let Requests { started, stopped, .. } = &self.requests;
        let last_stop = self.lifecycle().and_then(|lifecycle| lifecycle.stopped_at);
        let last_stop = last_stop.filter(|at| at.duration_since(self.now) <= SKEW);
        after(self.now, [*started, *stopped, last_stop])
    }
}

impl Change {
    /// The merge patch.
    fn patch(self) -> Value {
        let annotations = |values: Value| json!({"metadata": {"annotations": values}});
        match self {
            Self::Renew { at, span } => {
                annotations(json!({RENEWED_AT: at.to_string(), RENEWED_FOR: span.to_string()}))
            }
            Self::Stop(at) => annotations(json!({STOPPED_AT: at.to_string()})),
            Self::Start(at) => annotations(json!({STARTED_AT: at.to_string()})),
            Self::Keep => json!({"spec": {"lifecycle": {"ttl": Span::Never}}}),
        }
    }

    /// The verb, for messages.
    fn verb(self) -> &'static str {
        match self {
            Self::Renew { .. } => "renew",
            Self::Stop(_) => "stop",
            Self::Start(_) => "start",
            Self::Keep => "keep",
        }
    }
}

/// How far this machine's clock is ahead of the API server's, if the function ignores a request
/// for it. `object` is the answer to the request.
pub fn clock_ahead(object: &DynamicObject, now: Timestamp) -> Option<String> {
    let entries = object.metadata.managed_fields.iter().flatten();
    let own = entries.filter(|entry| entry.manager.as_deref() == Some(MANAGER));
    let written = own.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()?;
    let ahead = now.duration_since(written);
    (ahead > SKEW).then(|| spell(ahead.unsigned_abs()))
}

/// The reason why the API cannot stop this environment.
pub fn cannot_stop(environment: &Environment, object: &DynamicObject) -> CannotStop {
    let mut spec = object.data["spec"].clone();
    // Settings decide on a type that the claim leaves open. The status has the result.
    if let (Some(found), Some(spec)) = (environment.fields.get("type"), spec.as_object_mut()) {
        let parameters = spec.entry("parameters").or_insert_with(|| json!({}));
        if let Some(parameters) = parameters.as_object_mut() {
            parameters.entry("type").or_insert_with(|| found.clone());
        }
    }
    apis::for_environment_kind(&environment.kind)?.cannot_stop(&spec, &Settings::default())
}

#[cfg(test)]
mod tests;
