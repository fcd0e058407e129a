//! The plan of a call: the end of the environment, its power state, and whether the environment may
//! be created. The plan is a pure function of the observation and of the API's [`Terms`].

mod outdated;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::check::{Fields, quoted};
use crate::error::{Error, FieldError};
use crate::fingerprint::fingerprint;
use crate::lifecycle::{
    self, Age, CannotStop, Lifecycle, LifecycleSettings, NOTE, Note, Requests, SINCE, Situation,
    Span, Stop, leaves_resources,
};
use crate::observe::{Observation, Resource};
use crate::reason::Reason;
use crate::value::text;

/// The largest difference between two clocks that counts as an error of one of them.
const FAR: SignedDuration = SignedDuration::from_hours(25);

/// The part of an API in the plan.
pub struct Terms {
    /// The API's section in Settings.
    pub section: &'static str,
    /// The lifecycle in the section.
    pub settings: Result<LifecycleSettings, Error>,
    /// Slots of the resources that a stop of the environment stops.
    pub stoppable: &'static [&'static str],
    /// The reason why the environment cannot be stopped.
    pub cannot_stop: CannotStop,
}

/// The plan of a call. The default has no lifecycle and no errors.
#[derive(Default)]
pub struct Plan {
    active: Option<Active>,
    /// Wrong fields of `spec.lifecycle`, or a note that cannot be read.
    wrong: Option<Error>,
    /// The reason why the environment may not be created.
    refusal: Option<Error>,
    /// Fields and limits that the Composition's revision cannot carry.
    outdated: Vec<FieldError>,
}

/// The lifecycle that an answer carries out.
pub(crate) struct Active {
    pub inputs: Inputs,
    pub plan: lifecycle::Plan,
    /// Sentences about requests and fields without effect, which no earlier call reported.
    pub ignored: Vec<(Reason, String)>,
    /// Slots of the resources that a stop stops.
    pub stoppable: &'static [&'static str],
}

/// The inputs of the lifecycle: see [`Situation`].
pub(crate) struct Inputs {
    pub now: Timestamp,
    created: Option<Timestamp>,
    written: Option<Timestamp>,
    exists: bool,
    wishes: Option<Lifecycle>,
    settings: Option<LifecycleSettings>,
    announced_maximum: Option<Span>,
    requests: Requests,
    note: Option<Note>,
    pub cannot_stop: CannotStop,
    pub leaves_resources: bool,
}

impl Plan {
    /// Plans a call. The end and the power state are planned even if the claim's wishes are wrong.
    pub fn new(observation: &Observation<'_>, terms: Terms) -> Self {
        let mut plan = Self::default();
        // A Composition of an older schema revision carries no wishes. The plan of an environment
        // with a note continues under it, by the note alone.
        let is_carried = observation.settings.revision() >= SINCE;
        match read_note(observation) {
            Err(error) if is_carried => plan.wrong = Some(error),
            note => {
                let note = note.ok().flatten();
                if !is_carried {
                    plan.note_fields_without_effect(observation, note.is_some());
                }
                if is_carried || note.is_some() {
                    plan.activate(observation, &terms, note);
                }
            }
        }
        let admitted =
            terms.settings.and_then(|lifecycle| plan.admit(observation, terms.section, &lifecycle));
        plan.refusal = admitted.err();
        plan
    }

    /// Plans the end and the power state. Wrong wishes have no effect.
    fn activate(&mut self, observation: &Observation<'_>, terms: &Terms, note: Option<Note>) {
        let xr = &observation.xr;
        // The observed resources are a better source than a spec that may be wrong.
        let is_stoppable = terms.stoppable.iter().any(|slot| observation.exists(slot));
        let cannot_stop = terms.cannot_stop.filter(|_| !is_stoppable);
        let settings = terms.settings.as_ref().ok();
        let is_known = settings.is_some() && !observation.settings.config_not_found;
        let announced = text(&xr.status, &["lifecycle", "maximum"]);
        let annotations = &xr.annotations;
        let now = clock(observation);
        let age = Age { created: xr.created, is_claimed: xr.claim.is_some() };
        let requests = Requests::read(|name| annotations.get(name).map(String::as_str), now)
            .within(age, note.as_ref());
        let mut inputs = Inputs {
            now,
            created: xr.created,
            written: xr.written,
            exists: existed(observation),
            wishes: None,
            settings: settings.cloned(),
            announced_maximum: announced.filter(|_| !is_known).and_then(|text| text.parse().ok()),
            requests,
            note,
            cannot_stop,
            leaves_resources: leaves_resources(&xr.spec),
        };
        match inputs.read_wishes(observation) {
            Ok(wishes) => inputs.wishes = wishes,
            Err(error) => self.wrong = Some(error),
        }
        self.active = Some(inputs.activate(terms.stoppable, false));
    }

    /// The plan for a rejected claim or rejected Settings.
    #[must_use]
    pub fn rejected(self) -> Self {
        let active = self.active.map(|active| active.inputs.activate(active.stoppable, true));
        Self { active, ..self }
    }

    /// The status of an API with a valid spec.
    ///
    /// # Errors
    /// The error of the API, and the wrong fields of `spec.lifecycle`: a user sees all wrong fields
    /// at once.
    pub fn checked<T>(&self, status: Result<T, Error>) -> Result<T, Error> {
        match (&self.wrong, status) {
            (Some(Error::InvalidSpec(lifecycle)), Err(Error::InvalidSpec(fields))) => {
                Err(Error::InvalidSpec([fields.as_slice(), lifecycle].concat()))
            }
            (Some(wrong), _) => Err(wrong.clone()),
            (None, status) => status,
        }
    }

    /// Whether the environment may be created. An environment that exists always may.
    ///
    /// # Errors
    /// The environment is new. Its Settings do not exist or are invalid, or they have a limit that
    /// its Composition cannot carry.
    pub fn admission(&self) -> Result<(), Error> {
        self.refusal.clone().map_or(Ok(()), Err)
    }

    /// The lifecycle. `None` if the environment has none, or a note that cannot be read.
    pub(crate) fn active(&self) -> Option<&Active> {
        self.active.as_ref()
    }

    /// Why the environment is to be stopped; `None` if it is to run.
    pub fn stop(&self) -> Option<Stop> {
        self.active.as_ref()?.plan.stop
    }

    /// Whether there are resources to stop.
    pub fn stops_what_exists(&self, observation: &Observation<'_>) -> bool {
        self.stop().is_some() && observation.resources.values().any(Resource::is_ours)
    }

    /// Fields and limits that the Composition's revision cannot carry.
    pub(crate) fn outdated(&self) -> &[FieldError] {
        &self.outdated
    }
}

impl Inputs {
    /// The claim's wishes. `None` if the Composition carries none.
    fn read_wishes(&self, observation: &Observation<'_>) -> Result<Option<Lifecycle>, Error> {
        const PATH: &str = "spec.lifecycle";
        let is_carried = observation.settings.revision() >= SINCE;
        let wishes = match &observation.xr.lifecycle {
            Some(wishes) if is_carried => crate::check::typed::<Lifecycle>(wishes, PATH)
                .map_err(|field| Error::InvalidSpec(vec![field]))?,
            _ => Lifecycle::default(),
        };
        let settings = self.settings.as_ref();
        let maximum = settings.and_then(|settings| settings.maximum).or(self.announced_maximum);
        let (note, cannot_stop) = (self.note.as_ref(), self.cannot_stop);
        let mut fields = Fields::default();
        wishes.check(PATH, maximum, note, cannot_stop, self.leaves_resources, &mut fields);
        fields.verdict(Error::InvalidSpec)?;
        Ok(Some(wishes).filter(|_| is_carried))
    }

    /// Plans. Sentences about ignored annotations are reported, unless an earlier call reported
    /// them.
    fn activate(self, stoppable: &'static [&'static str], is_rejected: bool) -> Active {
        let mut plan = lifecycle::Plan::new(&Situation {
            now: self.now,
            created: self.created,
            written: self.written,
            exists: self.exists,
            wishes: self.wishes.as_ref(),
            settings: self.settings.as_ref(),
            is_rejected,
            announced_maximum: self.announced_maximum,
            requests: &self.requests,
            note: self.note.as_ref(),
            cannot_stop: self.cannot_stop,
            leaves_resources: self.leaves_resources,
        });
        let mut ignored = self.without_effect(&plan);
        let sentences: Vec<&str> = ignored.iter().map(|(_, sentence)| sentence.as_str()).collect();
        let hash = (!ignored.is_empty()).then(|| fingerprint(&sentences.join("\n")));
        if plan.note.ignored == hash {
            ignored.clear();
        }
        plan.note.ignored = hash;
        Active { inputs: self, plan, ignored, stoppable }
    }

    /// The sentences about requests and fields without effect.
    fn without_effect(&self, plan: &lifecycle::Plan) -> Vec<(Reason, String)> {
        let fields = self
            .wishes
            .as_ref()
            .map(|wishes| wishes.without_effect("spec.lifecycle", &plan.note, self.cannot_stop));
        let fields = fields.into_iter().flatten();
        let requests = self.requests.ignored.iter().cloned();
        requests
            .map(|request| (Reason::RequestIgnored, request))
            .chain(fields.map(|field| (Reason::NoEffect, field.to_string())))
            .collect()
    }
}

/// The time of this call. A clock that lies before the latest write of the composite is wrong. The
/// API server sets that time. If it is more than a day ahead, it is ignored, because clocks do not
/// differ so much.
fn clock(observation: &Observation<'_>) -> Timestamp {
    let now = observation.now;
    let written = observation.xr.written.filter(|written| written.duration_since(now) <= FAR);
    written.map_or(now, |written| written.max(now))
}

/// Whether the environment has its first resource, which has the note, or had a ready resource that
/// a person deleted. Other resources alone come from a first apply that was interrupted.
fn existed(observation: &Observation<'_>) -> bool {
    let listed = observation.xr.status.get("resources").and_then(Value::as_array);
    observation.has_first_resource()
        || listed.into_iter().flatten().any(|resource| resource["ready"] == true)
}

/// The note of an earlier call.
///
/// # Errors
/// The note cannot be read. It has no effect, and stays as it is.
fn read_note(observation: &Observation<'_>) -> Result<Option<Note>, Error> {
    let noted = observation.api.first_slots.iter().find_map(|slot| {
        let first = observation.resources.get(*slot)?;
        Some((slot, first.annotation(NOTE)?))
    });
    let Some((slot, text)) = noted else { return Ok(None) };
    Note::read(text).map(Some).map_err(|error| {
        let path = format!("annotation {NOTE} of {slot}");
        let message = format!(
            "found {}, {error}; allowed: the text of this or an earlier release. Install the \
             release that wrote it, or remove the annotation to start the time to live again",
            quoted(text)
        );
        Error::InvalidSpec(vec![FieldError { path, message }])
    })
}
