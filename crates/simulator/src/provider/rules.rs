//! Rejections by clouds: of creations, changes and deletions. The facts list the immutable fields,
//! and have the messages of most rejections. The table of kinds has the other rules.
//!
//! A refusal is the name of a case in the facts, or the message itself.

use serde_json::Value;

use super::behaviour::Behaviour;
use super::machines::Machine;

/// The rules in the table of a kind, in addition to the facts.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The field of `spec.forProvider` with the name of the resource that this one belongs to and
    /// is deleted with.
    pub(super) part_of: Option<&'static str>,
    /// The refusal of a creation before the resource that this one belongs to exists.
    pub(super) refused_alone: Option<&'static str>,
    /// Immutable paths below `spec.forProvider` that are not in the facts.
    pub(super) immutable: &'static [&'static str],
    /// Fields of `spec.forProvider` that the cloud chooses if the spec lacks them.
    pub(super) computed: &'static [&'static str],
    /// Paths of sizes that cannot shrink, and the refusal.
    pub(super) grows: &'static [(&'static str, &'static str)],
    /// Paths of versions that the cloud also upgrades automatically and never downgrades, and the
    /// refusal.
    pub(super) rises: &'static [(&'static str, &'static str)],
    /// Fields with changes that stop and start a machine, in the order of the changes.
    pub(super) restarts: &'static [&'static str],
    /// Paths with changes that take their time.
    pub(super) slow: &'static [&'static str],
    /// The refusal of parameters that contradict each other.
    pub(super) contradiction: Option<fn(&Value) -> Option<String>>,
    /// The refusal of a change while the server that the resource belongs to is stopped. Until then
    /// the resource counts as created, because providers do not ask a stopped server.
    pub(super) refused_while_stopped: Option<&'static str>,
    /// Fields with changes that wait for a maintenance window, unless `applyImmediately` is set.
    pub(super) windowed: &'static [&'static str],
    /// Fields that change only through another field.
    pub(super) replaced: &'static [Replaced],
    /// Resources that must be deleted first.
    pub(super) needed_by: &'static [Dependent],
    /// The refusal of a deletion because of the parameters.
    pub(super) protected: Option<fn(&Value) -> Option<&'static str>>,
    /// The refusal of a creation because of the parameters, and the name in its message.
    pub(super) refused: Option<fn(&Value) -> Option<Refusal>>,
    /// The field of `status.atProvider` with the cloud's state, if any.
    pub(super) state: Option<&'static str>,
    /// The refusal of a read, after the resource that this one belongs to is deleted.
    pub(super) unreadable: Option<&'static str>,
    /// The refusal of a read, if another account has a resource of this name.
    pub(super) foreign: Option<&'static str>,
    /// The refusal of a creation within a week of the deletion of a resource of this name.
    pub(super) reserved: Option<&'static str>,
    /// A second resource that a creation temporarily creates, depending on the parameters. It
    /// remains if the provider no longer follows the creation.
    pub(super) intermediate: Option<fn(&Value) -> Option<&'static str>>,
    /// Whether the provider updates a resource at each observation, even without a difference.
    pub(super) restless: bool,
}

/// A refusal, and the name in its message.
type Refusal = (&'static str, String);

/// A kind of resources that need another resource.
#[derive(Clone, Copy)]
pub(super) struct Dependent {
    pub(super) kind: &'static str,
    /// The path below `spec.forProvider` with the name of the needed resource.
    pub(super) pointer: &'static str,
    /// Whether they block the deletion only while they are being created or deleted.
    pub(super) only_busy: bool,
    /// The parameter of the needed resource that makes its provider delete them first.
    pub(super) unless: Option<&'static str>,
    /// The refusal.
    pub(super) refusal: &'static str,
}

/// A field that can change only if another field names a temporary replacement.
#[derive(Clone, Copy)]
pub(super) struct Replaced {
    pub(super) path: &'static str,
    pub(super) by: &'static str,
    /// The provider's message if the other field is missing.
    pub(super) words: &'static str,
}

/// Resources that need another one for as long as they exist.
pub(super) const fn needed(
    kind: &'static str,
    pointer: &'static str,
    refusal: &'static str,
) -> Dependent {
    Dependent { kind, pointer, only_busy: false, unless: None, refusal }
}

/// A resource in a cloud that may block the deletion of another one.
#[derive(Clone, Copy, Debug)]
pub struct Existing<'a> {
    /// The group of its kind, without the namespaced API's `m`.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its name in the cloud.
    pub name: &'a str,
    /// Its `spec.forProvider` without references.
    pub parameters: &'a Value,
    /// Whether it is being created or deleted.
    pub is_busy: bool,
}

impl Rules {
    /// No rules in addition to the facts.
    pub(super) const NONE: Self = Self {
        part_of: None,
        refused_alone: None,
        immutable: &[],
        computed: &[],
        grows: &[],
        rises: &[],
        restarts: &[],
        slow: &[],
        contradiction: None,
        refused_while_stopped: None,
        windowed: &[],
        replaced: &[],
        needed_by: &[],
        protected: None,
        refused: None,
        state: None,
        unreadable: None,
        foreign: None,
        reserved: None,
        intermediate: None,
        restless: false,
    };

    /// The message if a resource with these parameters cannot be created.
    pub(super) fn forbids_creation(
        &self,
        facts: Option<&Behaviour>,
        parameters: &Value,
    ) -> Option<String> {
        let contradiction = self.contradiction.and_then(|contradiction| contradiction(parameters));
        contradiction.or_else(|| {
            let (refusal, name) = self.refused?(parameters)?;
            Some(words(facts, refusal, &name))
        })
    }

    /// The message if `external` cannot be deleted while the resources in `all` exist.
    pub(super) fn forbids_deletion<'a>(
        &self,
        facts: Option<&Behaviour>,
        external: Existing<'_>,
        mut all: impl Iterator<Item = Existing<'a>>,
    ) -> Option<String> {
        let is_in_the_way = |dependent: &Dependent, one: Existing<'_>| {
            one.kind == dependent.kind
                && one.group == external.group
                && (!dependent.only_busy || one.is_busy)
                && dependent.unless.is_none_or(|field| external.parameters[field] != true)
                && one
                    .parameters
                    .pointer(dependent.pointer)
                    .is_some_and(|named| mentions(named, external.name))
        };
        let protected = self.protected.and_then(|protected| protected(external.parameters));
        let refusal = protected.or_else(|| {
            all.find_map(|one| {
                let found = self.needed_by.iter().find(|dependent| is_in_the_way(dependent, one));
                found.map(|dependent| dependent.refusal)
            })
        })?;
        Some(words(facts, refusal, external.name))
    }

    /// The message if a resource with the parameters `there` cannot be changed to `wanted`. A
    /// difference in one immutable field blocks all changes.
    pub(super) fn forbids_change(
        &self,
        facts: Option<&Behaviour>,
        there: &Value,
        wanted: &Value,
    ) -> Option<String> {
        let known = facts.iter().flat_map(|facts| facts.immutable.iter().map(String::as_str));
        let mut immutable = known.chain(self.immutable.iter().copied());
        if let Some((argument, old, new)) =
            immutable.find_map(|path| difference(path, there, wanted))
        {
            return Some(format!(
                "refuse to update the external resource because the following update requires \
                 replacing it: cannot change the value of the argument {argument:?} from {old:?} \
                 to {new:?}"
            ));
        }
        if let Some(why) = self.contradiction.and_then(|contradiction| contradiction(wanted)) {
            return Some(why);
        }
        let is_stuck = |one: &&Replaced| {
            at(wanted, one.path).is_some_and(|new| Some(new) != at(there, one.path))
                && at(wanted, one.by).is_none()
        };
        if let Some(one) = self.replaced.iter().find(is_stuck) {
            return Some(one.words.to_owned());
        }
        let lowered = |path| match (at(wanted, path), at(there, path)) {
            (Some(wanted), Some(there)) => is_less(wanted, there),
            _ => false,
        };
        let mut monotonic = self.rises.iter().chain(self.grows);
        let (_, refusal) = monotonic.find(|(path, _)| lowered(path))?;
        Some(words(facts, refusal, ""))
    }

    /// Whether a change from `there` to `wanted` takes its time.
    pub(super) fn is_slow(&self, there: &Value, wanted: &Value) -> bool {
        let mut paths = self.slow.iter().chain(self.restarts);
        paths.any(|path| at(wanted, path).is_some_and(|new| Some(new) != at(there, path)))
    }

    /// Makes the changes of `there` that take effect now. A machine, with its id, is stopped and
    /// started for some of them. `no_capacity` has the cloud's words if it cannot start. Changes
    /// before the error are made.
    pub(super) fn change(
        &self,
        there: &mut Value,
        machine: Option<(&mut Machine, &str)>,
        wanted: &Value,
        no_capacity: Option<&str>,
    ) -> Result<(), String> {
        let changes = self.effective(wanted);
        for (field, value) in changes.as_object().into_iter().flatten() {
            if machine.is_none() || !self.restarts.contains(&field.as_str()) {
                there[field] = value.clone();
            }
        }
        let Some((machine, id)) = machine else { return Ok(()) };
        machine.restart_with(self.restarts, there, &changes, id, no_capacity)
    }

    /// The changes that take effect immediately. The others wait for a maintenance window.
    pub(super) fn effective(&self, wanted: &Value) -> Value {
        let mut changes = wanted.clone();
        if let Some(fields) = changes.as_object_mut()
            && wanted["applyImmediately"] != true
        {
            fields.retain(|field, _| !self.windowed.contains(&field.as_str()));
        }
        changes
    }
}

/// The message of a refusal, with this resource name. After some errors, the facts have a note in
/// parentheses, which is omitted.
pub(super) fn words(facts: Option<&Behaviour>, refusal: &str, name: &str) -> String {
    const NAMES: [&str; 7] =
        ["<name>", "<id>", "<identifier>", "<bucket>", "<db>", "sg-...", "eni-..."];
    let words = facts.and_then(|facts| facts.words(refusal)).unwrap_or(refusal);
    let end = words.find("}] (").map_or(words.len(), |end| end + 2);
    NAMES.iter().fold(words[..end].to_owned(), |words, name_of| words.replace(name_of, name))
}

/// Whether any field of `wanted` differs in `there`. The cloud chooses fields that are missing in
/// `spec.forProvider`.
pub fn differs(there: &Value, wanted: &Value) -> bool {
    let wanted = wanted.as_object();
    wanted.into_iter().flatten().any(|(field, value)| there.get(field) != Some(value))
}

/// The change of the value at a path, if any: Terraform's name of the argument, the old value and
/// the new one. For a list, only the number of entries is compared. For a block, only its existence
/// is compared. Their fields have separate paths.
fn difference(path: &str, there: &Value, wanted: &Value) -> Option<(String, String, String)> {
    let (list, field) = path
        .split_once("[]")
        .map_or((path, None), |(list, field)| (list, Some(field.trim_start_matches('.'))));
    let (old, new) = (at(there, list), at(wanted, list)?);
    let entries = |value: Option<&Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
    match (old, new, field) {
        (Some(Value::Array(old)), Value::Array(new), Some(field)) if old.len() == new.len() => {
            let mut pairs = old.iter().zip(new).enumerate().filter(|_| !field.is_empty());
            pairs.find_map(|(index, (old, new))| {
                let (argument, old, new) = difference(field, old, new)?;
                Some((format!("{}.{index}.{argument}", snake(list)), old, new))
            })
        }
        (old, Value::Array(_), _) if old != Some(new) && entries(old) != entries(Some(new)) => {
            let counted = (entries(old).to_string(), entries(Some(new)).to_string());
            Some((format!("{}.#", snake(list)), counted.0, counted.1))
        }
        (_, _, Some(_)) | (Some(Value::Object(_)), Value::Object(_), _) => None,
        (None, Value::Object(_), _) => {
            Some((format!("{}.#", snake(list)), "0".to_owned(), "1".to_owned()))
        }
        (old, new, None) if old != Some(new) => Some((snake(list), shown(old), shown(Some(new)))),
        _ => None,
    }
}

/// Whether one number or version is lower than another.
fn is_less(one: &Value, other: &Value) -> bool {
    let numbers = |value: &Value| -> Vec<u64> {
        let text = shown(Some(value));
        text.split('.').filter_map(|number| number.parse().ok()).collect()
    };
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one < other,
        _ => numbers(one) < numbers(other),
    }
}

/// Whether a value is this name or an ARN that ends in it, or contains one of them.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => {
            text == name || text.starts_with("arn:") && text.rsplit('/').next() == Some(name)
        }
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, name)),
        _ => false,
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, field| value.get(field))
        .filter(|found| !found.is_null())
}

fn shown(value: Option<&Value>) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    value.map_or_else(String::new, text)
}

/// A field's name in Terraform. The only entry of a block has the index 0.
fn snake(path: &str) -> String {
    let letter = |c: char| if c.is_ascii_uppercase() { vec!['_', c] } else { vec![c] };
    let words: String = path.chars().flat_map(letter).collect();
    words.to_lowercase().replace('.', ".0.")
}
