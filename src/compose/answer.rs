//! The answer: what the composition amounts to, once the API has said all it wants.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::health::State;
use super::status::{self, Leaf, Phase};
use super::{
    Addition, COMMON_ADDITIONS, Composition, Expiring, OverBudget, Stalled, observed, revision,
    scrub,
};
use crate::diagnosis::Code;
use crate::error::Error;
use crate::reason::Reason;
use crate::value::Object;

/// How soon core should ask again.
mod requeue {
    use std::time::Duration;
    /// Everything is ready: changes arrive by watches, this is for what has none.
    pub const READY: Duration = Duration::from_mins(10);
    /// Something is being made, waits or fails. Soon enough for what a time decides: that a failure
    /// has lasted, for example.
    pub const BUSY: Duration = Duration::from_secs(30);
    /// A secret was made, and core publishes it right after this answer.
    pub const PUBLISHING: Duration = Duration::from_secs(5);
}

/// What goes into the response.
pub struct Answer {
    /// Every resource by slot, and whether it is ready.
    pub resources: BTreeMap<String, (Object, bool)>,
    /// The composite's status.
    pub status: Object,
    /// The composite's connection details (claims flavour; empty in the other).
    pub connection: BTreeMap<String, Vec<u8>>,
    /// Where the environment stands.
    pub phase: Phase,
    /// Whether everything is ready, what is not asked for yet included.
    pub ready: bool,
    /// `Provisioned`: its reason, unless the environment was rejected.
    pub reason: Reason,
    /// The code of the rejection, if everything is asked for as it runs because of one.
    pub rejected: Option<Code>,
    /// `Provisioned`: its sentence.
    pub message: String,
    /// The condition `Stalled`, where it has to be written.
    pub stalled: Option<Stalled>,
    /// The condition `Expiring`, where it has to be written.
    pub expiring: Option<Expiring>,
    /// The condition `OverBudget`, where it has to be written.
    pub over_budget: Option<OverBudget>,
    /// Sentences for the owner of the environment, once each.
    pub warnings: Vec<(Reason, String)>,
    /// Whether that sentence is news.
    pub changed: bool,
    /// When to ask again.
    pub requeue: Duration,
}

impl Composition<'_> {
    /// Completes what the API composed.
    ///
    /// # Errors
    /// [`Error::WouldDelete`] where a resource of ours exists that was neither asked for nor
    /// retired.
    pub fn complete(&mut self) -> Result<(), Error> {
        self.compose_connection_secret()?;
        self.tell_changes();
        self.estimate();
        self.apply_power()?;
        self.account_for_everything()
    }

    /// Ends the composition. `status` is the API's own part, and `additions` is what later schema
    /// revisions added to that. `wrong` is the reason why everything is asked for as it runs.
    pub fn conclude(
        mut self,
        status: Object,
        additions: &[Addition],
        wrong: Option<&Error>,
    ) -> Answer {
        self.keep_note();
        let power = self.power;
        let leaves = self.leaves();
        let exists = self.desired.keys().any(|slot| self.exists(slot));
        let mut common = status::common(&leaves, exists);
        // Where nothing is stored nobody waits for it.
        common.spec_hash = self.xr.generation.map(|_| self.xr.spec_hash.clone());
        common.on_deletion = Some(self.on_deletion());
        let outlook = power.and_then(|power| self.outlook(power, common.phase));
        let (mut reason, mut message) = provisioned(&leaves, common.phase);
        let phase_of_lifecycle = outlook.as_ref().and_then(|outlook| outlook.phase);
        let phase = phase_of_lifecycle.unwrap_or(common.phase);
        if phase == Phase::Stopped {
            (reason, message) = (Reason::Stopped, self.told_of_stop());
        }
        common.phase = phase;
        common.power = power;
        common.lifecycle = outlook.as_ref().map(|outlook| outlook.status.clone());
        if let Some(price) = self.price() {
            common.tell_price(price);
        }
        let rejected = wrong.map(Error::code);
        let message = wrong.map_or(message, ToString::to_string);
        let message = scrub::cut(&message);
        let mut whole = status::known(status);
        // An API may have a phase of its own, which has the same values for this.
        if let Some(own) = whole.get_mut("phase").filter(|_| phase_of_lifecycle.is_some()) {
            *own = serde_json::to_value(phase).unwrap_or_default();
        }
        let known = self.settings.revision();
        revision::hold_back(&mut whole, known, additions);
        if let Ok(Value::Object(mut common)) = serde_json::to_value(common) {
            revision::hold_back(&mut common, known, COMMON_ADDITIONS);
            // An API may have words of its own for one of these.
            for (field, value) in common {
                whole.entry(field).or_insert(value);
            }
        }
        self.date(&mut whole);
        let legacy = self.xr.scope == super::Scope::LegacyCluster;
        let usual = match phase {
            Phase::Ready | Phase::Stopped => requeue::READY,
            _ if self.unpublished => requeue::PUBLISHING,
            _ => requeue::BUSY,
        };
        let (expiring, warnings) =
            outlook.map(|outlook| (outlook.expiring, outlook.warnings)).unwrap_or_default();
        Answer {
            expiring,
            over_budget: self.over_budget(),
            warnings,
            rejected,
            changed: self.is_news(&word(reason, rejected), &message),
            stalled: Stalled::from_leaves(&leaves, &self.xr.status, self.now),
            resources: self
                .desired
                .into_iter()
                .map(|(slot, d)| (slot, (d.object, d.health.ready)))
                .collect(),
            status: whole,
            connection: if legacy { self.connection } else { BTreeMap::new() },
            phase,
            ready: leaves.iter().all(|leaf| leaf.status.ready),
            reason,
            message,
            requeue: self.course.as_ref().map_or(usual, |course| course.requeue(self.now, usual)),
        }
    }

    /// Sets the status field that tells when any other changed last.
    fn date(&self, status: &mut Object) {
        let Some(field) = self.dated else { return };
        let same = status.iter().all(|(key, value)| self.xr.status.get(key) == Some(value))
            && self.xr.status.keys().all(|key| {
                key == field
                    || crossplane::status::FIELDS.contains(&key.as_str())
                    || status.contains_key(key)
            });
        let before = self.xr.status.get(field).filter(|_| same).cloned();
        status.insert(field.to_owned(), before.unwrap_or_else(|| status::seconds(self.now).into()));
    }

    /// Nothing that exists vanishes by accident.
    fn account_for_everything(&self) -> Result<(), Error> {
        let missed = |(slot, resource): (&String, &observed::Resource)| {
            let dropped = resource.is_ours()
                && !self.desired.contains_key(slot)
                && !self.retired.contains(slot);
            dropped.then(|| slot.clone())
        };
        let missed: Vec<String> = self.observed.iter().filter_map(missed).collect();
        if missed.is_empty() { Ok(()) } else { Err(Error::WouldDelete(missed)) }
    }

    /// Whether `Provisioned` said something else before.
    fn is_news(&self, reason: &str, message: &str) -> bool {
        let conditions = self.xr.status.get("conditions").and_then(Value::as_array);
        let before = conditions
            .into_iter()
            .flatten()
            .find(|c| c.get("type").and_then(Value::as_str) == Some("Provisioned"));
        let field = |name| before.and_then(|before| before.get(name)).and_then(Value::as_str);
        field("reason") != Some(reason) || field("message") != Some(message)
    }
}

impl Answer {
    /// The reason of the condition `Provisioned` in one word.
    pub fn word(&self) -> String {
        word(self.reason, self.rejected)
    }
}

fn word(reason: Reason, rejected: Option<Code>) -> String {
    rejected.map_or_else(|| reason.to_string(), |code| code.to_string())
}

/// Reason and sentence of the condition `Provisioned`: what failed first, else what everything
/// waits for.
fn provisioned(leaves: &[Leaf], phase: Phase) -> (Reason, String) {
    let failed = leaves.iter().filter(|leaf| leaf.state == State::Failed);
    if let Some(first) = failed
        .min_by(|a, b| (&a.status.since, &a.status.slot).cmp(&(&b.status.since, &b.status.slot)))
    {
        return (Reason::Failed, sentence(first));
    }
    if phase == Phase::Ready {
        let count = leaves.iter().filter(|leaf| leaf.counted).count();
        let told = if count == 1 {
            "the only resource is ready".to_owned()
        } else {
            format!("all {count} resources are ready")
        };
        return (Reason::Available, told);
    }
    let unready: Vec<&Leaf> = leaves.iter().filter(|leaf| !leaf.status.ready).collect();
    let creating = unready.iter().find(|leaf| leaf.state == State::Creating);
    let not_accepted = Reason::NotAccepted.to_string();
    let refused = unready.iter().find(|leaf| leaf.status.reason.as_ref() == Some(&not_accepted));
    let Some(first) = refused.or(creating).or(unready.first()) else {
        return (Reason::Creating, "nothing is composed yet".to_owned());
    };
    let reason = if first.state == State::Creating { Reason::Creating } else { Reason::Waiting };
    let others =
        unready.iter().filter(|leaf| leaf.counted && leaf.status.slot != first.status.slot).count();
    let rest = if others == 0 { String::new() } else { format!(" ({others} more not ready)") };
    (reason, format!("{}{rest}", sentence(first)))
}

fn sentence(leaf: &Leaf) -> String {
    let message = leaf.status.message.as_deref().unwrap_or("is not ready");
    format!("{} ({}): {message}", leaf.status.slot, leaf.status.kind)
}
