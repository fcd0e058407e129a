//! How a kind behaves.

use serde_json::{Value, json};

use super::behaviour::{self, Behaviour};
use super::rules::Rules;
use super::{State, is_ready, set_condition};
use crate::core::{ConnectionDetails, World, naming};
use ::crossplane::json::{at, overlay, text};

/// The Google Cloud project of a resource that names none.
pub(super) const PROJECT: &str = "acme-dev";

/// How a kind behaves. [`DEFAULT`] is the ordinary managed resource; a kind's table entry says what
/// differs.
pub(super) struct KindBehaviour {
    /// How many rounds the cloud takes, once nothing is waited for.
    pub(super) rounds: u32,
    /// Whether the provider works in the background, so that a refusal shows in LastAsyncOperation.
    pub(super) asynchronous: bool,
    /// Whether `status.atProvider` has the id and repeats `spec.forProvider`, as upjet's do.
    pub(super) mirrors: bool,
    /// Whether the provider watches for changes outside, so that it needs no poll.
    pub(super) watches: bool,
    /// The name in the cloud.
    pub(super) id: Id,
    /// The fields that a reference or a selector fills.
    pub(super) references: &'static [Reference],
    /// What else must be there first; an error says what is waited for.
    pub(super) waits: fn(&Value, &World) -> Result<(), String>,
    /// `status.atProvider` once made, over the mirrored `spec.forProvider`.
    pub(super) at_provider: fn(&Context<'_>) -> Value,
    /// Fields of `spec.forProvider` that the provider fills in where they are absent, and that the
    /// facts do not have.
    pub(super) late_initialize: fn(&Context<'_>) -> Value,
    /// The connection details.
    pub(super) connection: fn(&Context<'_>) -> ConnectionDetails,
    /// What else making it does to the world.
    pub(super) effects: fn(&mut Value, &World, &mut World, &mut ConnectionDetails),
    /// How the object tells its state.
    pub(super) set_status: fn(&mut Value, &State, &World, &Self),
    /// What its cloud refuses, beyond the facts.
    pub(super) rules: Rules,
    /// The facts about the kind, where there are any.
    pub(super) facts: Option<&'static Behaviour>,
}

impl KindBehaviour {
    /// Whether the cloud assigns the name of a resource when it creates it.
    pub(super) fn assigns_names(&self) -> bool {
        matches!(self.id, Id::Assigned(_) | Id::Capital(_))
    }

    /// Whether the provider writes nothing to a resource whose provider config does not exist.
    pub(super) fn is_silent_without_config(&self) -> bool {
        self.mirrors && self.asynchronous
    }

    /// What late initialisation writes: the facts' fields, and those of the table.
    pub(super) fn late_values(&self, of: &Context<'_>) -> Value {
        let fill = |text: &str| of.filled(text);
        let mut late = self.facts.map_or_else(|| json!({}), |facts| facts.late_initialize(&fill));
        overlay(&mut late, &(self.late_initialize)(of));
        late
    }
}

/// Where a resource's name in the cloud comes from.
#[derive(Clone, Copy)]
pub(super) enum Id {
    /// It is no managed resource.
    None,
    /// The object's own name, unless the external-name annotation says otherwise.
    Name,
    /// The cloud assigns one: this prefix and 17 hexadecimal digits.
    Assigned(&'static str),
    /// The cloud assigns one: this prefix and 13 capital letters and digits.
    Capital(&'static str),
    /// The same, in place of the name that the annotation had before the resource was there.
    Replaced(&'static str),
}

/// A field that `<base>Ref`, `<base>Refs` or `<base>Selector` fills with the external name of other
/// resources.
pub(super) struct Reference {
    /// The field that is filled.
    pub(super) field: &'static str,
    /// What the reference's and the selector's names begin with.
    pub(super) base: &'static str,
    /// The kind referred to.
    pub(super) target: &'static str,
    /// Whether the field holds several.
    pub(super) many: bool,
    /// The list of `spec.forProvider` in whose entries the field stands, where it stands in one.
    pub(super) within: Option<&'static str>,
}

/// A field that refers to one resource.
pub(super) const fn one(field: &'static str, target: &'static str) -> Reference {
    Reference { field, base: field, target, many: false, within: None }
}

/// A field in the entries of a list that refers to one resource.
pub(super) const fn each(
    list: &'static str,
    field: &'static str,
    target: &'static str,
) -> Reference {
    Reference { within: Some(list), ..one(field, target) }
}

/// A field that refers to several.
pub(super) const fn many(
    field: &'static str,
    base: &'static str,
    target: &'static str,
) -> Reference {
    Reference { field, base, target, many: true, within: None }
}

/// An ordinary managed resource: ready after one round, under its own name.
pub(super) const DEFAULT: KindBehaviour = KindBehaviour {
    rounds: 1,
    asynchronous: false,
    mirrors: false,
    watches: false,
    id: Id::Name,
    references: &[],
    waits: |_, _| Ok(()),
    at_provider: |_| json!({}),
    late_initialize: |_| json!({}),
    connection: |_| ConnectionDetails::new(),
    effects: |_, _, _, _| {},
    set_status: set_managed_status,
    rules: Rules::NONE,
    facts: None,
};

/// An ordinary kind of an upjet provider: it works in the background.
pub(super) const UPJET: KindBehaviour =
    KindBehaviour { asynchronous: true, mirrors: true, ..DEFAULT };

/// What a table entry may know of a resource.
pub(super) struct Context<'a> {
    pub(super) object: &'a Value,
    pub(super) world: &'a World,
    hash: String,
}

impl<'a> Context<'a> {
    pub(super) fn new(object: &'a Value, world: &'a World) -> Self {
        Self { object, world, hash: hash(object) }
    }

    /// The name in the cloud.
    pub(super) fn external(&self) -> &'a str {
        let annotated =
            text(self.object, &["metadata", "annotations", "crossplane.io/external-name"]);
        annotated.unwrap_or_else(|| self.name())
    }

    pub(super) fn name(&self) -> &'a str {
        text(self.object, &["metadata", "name"]).unwrap_or_default()
    }

    /// A text of `spec.forProvider`.
    pub(super) fn param(&self, field: &str) -> Option<&'a str> {
        text(self.object, &["spec", "forProvider", field])
    }

    /// A text of `spec.forProvider`; without one, the text that late initialisation writes by the
    /// facts.
    pub(super) fn param_or_late(&self, field: &str) -> &'a str {
        let late = || behaviour::for_object(self.object)?.late_text(field);
        self.param(field).or_else(late).unwrap_or_default()
    }

    /// The region or location, or `default`.
    pub(super) fn region(&self, default: &'a str) -> &'a str {
        self.param("region").or_else(|| self.param("location")).unwrap_or(default)
    }

    /// A text of the facts, with the resource's own values in place of what stands for them; `...`
    /// stands for an id.
    fn filled(&self, text: &str) -> String {
        let region = self.region("us-east-1");
        let text = text
            .replace("<region>", region)
            .replace("<location>", region)
            .replace("<zone>", &format!("{region}-a"))
            .replace("<project>", PROJECT)
            .replace("<rg>", self.param("resourceGroupName").unwrap_or("group"))
            .replace("<name>", self.external())
            .replace("<master user>", "postgres");
        let id = text.split_once("...").map(|(prefix, _)| format!("{prefix}{}", self.hex(17)));
        id.unwrap_or(text)
    }

    /// Hexadecimal digits that are this resource's own.
    pub(super) fn hex(&self, digits: usize) -> &str {
        self.hash.get(..digits).unwrap_or(&self.hash)
    }

    /// A number below 256 that is this resource's own; `index` gives another one.
    pub(super) fn byte(&self, index: usize) -> u8 {
        self.hash
            .get(2 * index..2 * index + 2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .unwrap_or(1)
    }

    /// A password that is this resource's own.
    pub(super) fn password(&self) -> String {
        naming::hex(&format!("password of {}", self.hash)).get(..27).unwrap_or_default().to_owned()
    }
}

impl Id {
    pub(super) fn for_object(self, object: &Value) -> String {
        let hash = hash(object);
        match self {
            Self::None => String::new(),
            Self::Name => text(object, &["metadata", "name"]).unwrap_or_default().to_owned(),
            Self::Assigned(prefix) => format!("{prefix}{}", hash.get(..17).unwrap_or_default()),
            Self::Capital(prefix) | Self::Replaced(prefix) => {
                format!("{prefix}{}", hash.get(..13).unwrap_or_default().to_uppercase())
            }
        }
    }
}

/// What is a resource's own: its uid, or its kind and name where it has none.
fn hash(object: &Value) -> String {
    let part = |path: &[&str]| text(object, path).unwrap_or_default();
    let identity = match part(&["metadata", "uid"]) {
        "" => [part(&["kind"]), part(&["metadata", "namespace"]), part(&["metadata", "name"])]
            .join("/"),
        uid => uid.to_owned(),
    };
    naming::hex(&identity)
}

/// Connection details of texts.
pub(super) fn details<const N: usize>(entries: [(&str, &str); N]) -> ConnectionDetails {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).collect()
}

/// Synced, Ready and, for what works in the background, LastAsyncOperation. A failure of what is
/// ready is a change that is refused.
fn set_managed_status(object: &mut Value, state: &State, world: &World, behaviour: &KindBehaviour) {
    let now = world.now().to_string();
    let is_made = is_ready(object);
    let mut put = |kind, status, reason, message: &str| {
        set_condition(object, &now, kind, status, reason, message);
    };
    match state {
        State::Ready => {
            put("Synced", "True", "ReconcileSuccess", "");
            put("Ready", "True", "Available", "");
            if behaviour.asynchronous {
                put("LastAsyncOperation", "True", "Success", "");
            }
        }
        State::Creating => {
            put("Synced", "True", "ReconcileSuccess", "");
            put("Ready", "False", "Creating", "");
        }
        State::Waiting(why) => put("Synced", "False", "ReconcileError", why),
        State::Failed(why) if is_made => {
            refuse(object, &now, Operation::Update, why, behaviour.asynchronous);
        }
        State::Failed(why) if behaviour.asynchronous => {
            put("Synced", "True", "ReconcileSuccess", "");
            let message = format!("async create failed: {why}");
            put("LastAsyncOperation", "False", "AsyncCreateFailure", &message);
            put("Ready", "False", "Creating", "");
        }
        State::Failed(why) => {
            put("Synced", "False", "ReconcileError", &format!("create failed: {why}"));
            put("Ready", "False", "Creating", "");
        }
    }
}

/// What a provider does with a resource that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Change it to what the object asks for.
    Update,
    /// Delete it.
    Delete,
}

/// Tells a refusal of what is there; `Ready` stays. An operation that began in the background shows
/// in LastAsyncOperation too.
pub(super) fn refuse(object: &mut Value, now: &str, operation: Operation, why: &str, began: bool) {
    let (verb, reason) = match operation {
        Operation::Update => ("update", "AsyncUpdateFailure"),
        Operation::Delete => ("delete", "AsyncDeleteFailure"),
    };
    let mut message = why.to_owned();
    if began {
        message = format!("async {verb} failed: {message}");
        set_condition(object, now, "LastAsyncOperation", "False", reason, &message);
    }
    let message = format!("{verb} failed: {message}");
    set_condition(object, now, "Synced", "False", "ReconcileError", &message);
}

/// Waits until the key that a secret reference below `spec.forProvider` names is there.
pub(super) fn await_secret(object: &Value, world: &World, field: &str) -> Result<(), String> {
    let Some(reference) = at(object, &["spec", "forProvider", field]) else { return Ok(()) };
    let own = text(object, &["metadata", "namespace"]);
    let namespace = own.or_else(|| text(reference, &["namespace"])).unwrap_or_default();
    let name = text(reference, &["name"]).unwrap_or_default();
    let key = text(reference, &["key"]).unwrap_or_default();
    if world.secret(namespace, name).is_none() {
        return Err(format!("cannot get secret {name:?} for {field}: not found"));
    }
    let found = world.secret_data(namespace, name);
    found
        .contains_key(key)
        .then_some(())
        .ok_or_else(|| format!("cannot get secret {name:?} for {field}: it has no key {key:?}"))
}
