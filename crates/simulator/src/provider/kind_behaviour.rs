//! The behaviour of a kind.

use serde_json::{Value, json};

use super::behaviour::{self, Behaviour};
use super::machines::Role;
use super::rules::Rules;
use super::{State, is_ready, set_condition};
use crate::core::{ConnectionDetails, World, naming};
use ::crossplane::json::{at, overlay, text};

/// The Google Cloud project of a resource without one in its spec.
pub(super) const PROJECT: &str = "acme-dev";

/// The behaviour of a kind. [`DEFAULT`] is the ordinary managed resource. A kind's table entry has
/// the differences.
pub(super) struct KindBehaviour {
    /// The number of rounds for a creation in the cloud, after waiting.
    pub(super) rounds: u32,
    /// Whether the provider works in the background, so that LastAsyncOperation reports a
    /// rejection.
    pub(super) asynchronous: bool,
    /// Whether `status.atProvider` has the ID and repeats `spec.forProvider`, as in upjet
    /// providers.
    pub(super) mirrors: bool,
    /// Whether the provider watches for external changes, so that it does not poll.
    pub(super) watches: bool,
    /// The name in the cloud.
    pub(super) id: Id,
    /// The fields that references or selectors set.
    pub(super) references: &'static [Reference],
    /// Other prerequisites. The error names the missing one.
    pub(super) waits: fn(&Value, &World) -> Result<(), String>,
    /// `status.atProvider` after creation, merged into the mirrored `spec.forProvider`.
    pub(super) at_provider: fn(&Context<'_>) -> Value,
    /// Fields of `spec.forProvider` that the provider sets if they are missing, in addition to
    /// those in the facts.
    pub(super) late_initialize: fn(&Context<'_>) -> Value,
    /// The connection details.
    pub(super) connection: fn(&Context<'_>) -> ConnectionDetails,
    /// Other effects of the creation on the world.
    pub(super) effects: fn(&mut Value, &World, &mut World, &mut ConnectionDetails),
    /// Writes the state to the object's conditions.
    pub(super) set_status: fn(&mut Value, &State, &World, &Self),
    /// Rejections by its cloud, in addition to the facts.
    pub(super) rules: Rules,
    /// Its effect on the power of machines.
    pub(super) role: Role,
    /// The facts about the kind, if any.
    pub(super) facts: Option<&'static Behaviour>,
}

impl KindBehaviour {
    /// Whether the cloud assigns the name of a resource when it creates it.
    pub(super) fn assigns_names(&self) -> bool {
        matches!(self.id, Id::Assigned(_) | Id::Capital(_) | Id::Of(_))
    }

    /// Whether the provider does not report a missing provider config on a resource.
    pub(super) fn is_silent_without_config(&self) -> bool {
        self.mirrors && self.asynchronous
    }

    /// The values that late initialization writes: the fields of the facts, and those of the table.
    pub(super) fn late_values(&self, of: &Context<'_>) -> Value {
        let fill = |text: &str| of.filled(text);
        let mut late = self.facts.map_or_else(|| json!({}), |facts| facts.late_initialize(&fill));
        overlay(&mut late, &(self.late_initialize)(of));
        late
    }
}

/// The source of a resource's name in the cloud.
#[derive(Clone, Copy)]
pub(super) enum Id {
    /// The kind is not a managed resource.
    None,
    /// The object's own name, unless the external-name annotation says otherwise.
    Name,
    /// The cloud assigns the name: this prefix and 17 hexadecimal digits.
    Assigned(&'static str),
    /// The cloud assigns the name: this prefix and 13 capital letters and digits.
    Capital(&'static str),
    /// The same as `Capital`, replacing the name in the annotation before the creation.
    Replaced(&'static str),
    /// The id of another resource, in this field of `spec.forProvider`.
    Of(&'static str),
}

/// A field that `<base>Ref`, `<base>Refs` or `<base>Selector` sets to the external names of other
/// resources.
pub(super) struct Reference {
    /// The name of the field.
    pub(super) field: &'static str,
    /// The prefix of the reference's and the selector's names.
    pub(super) base: &'static str,
    /// The kind of the referenced resource.
    pub(super) target: &'static str,
    /// Whether the field is a list.
    pub(super) many: bool,
    /// The list in `spec.forProvider` with the field in its entries, if any.
    pub(super) within: Option<&'static str>,
}

/// A field that references one resource.
pub(super) const fn one(field: &'static str, target: &'static str) -> Reference {
    Reference { field, base: field, target, many: false, within: None }
}

/// A field in the entries of a list. It references one resource.
pub(super) const fn each(
    list: &'static str,
    field: &'static str,
    target: &'static str,
) -> Reference {
    Reference { within: Some(list), ..one(field, target) }
}

/// A field that references several resources.
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
    role: Role::None,
    facts: None,
};

/// An ordinary kind of an upjet provider: it works in the background.
pub(super) const UPJET: KindBehaviour =
    KindBehaviour { asynchronous: true, mirrors: true, ..DEFAULT };

/// The data of a resource for a table entry.
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

    /// A text of `spec.forProvider`. If missing, the text that late initialization writes according
    /// to the facts.
    pub(super) fn param_or_late(&self, field: &str) -> &'a str {
        let late = || behaviour::for_object(self.object)?.late_text(field);
        self.param(field).or_else(late).unwrap_or_default()
    }

    /// The region or location, or `default`.
    pub(super) fn region(&self, default: &'a str) -> &'a str {
        self.param("region").or_else(|| self.param("location")).unwrap_or(default)
    }

    /// A text of the facts with its placeholders replaced by the resource's own values. `...` is
    /// the placeholder of an ID.
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

    /// Hexadecimal digits derived from the resource's identity.
    pub(super) fn hex(&self, digits: usize) -> &str {
        self.hash.get(..digits).unwrap_or(&self.hash)
    }

    /// A number below 256 derived from the resource's identity and the `index`.
    pub(super) fn byte(&self, index: usize) -> u8 {
        self.hash
            .get(2 * index..2 * index + 2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .unwrap_or(1)
    }

    /// A password derived from the resource's identity.
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
            Self::Of(field) => {
                text(object, &["spec", "forProvider", field]).unwrap_or_default().to_owned()
            }
            Self::Capital(prefix) | Self::Replaced(prefix) => {
                format!("{prefix}{}", hash.get(..13).unwrap_or_default().to_uppercase())
            }
        }
    }
}

/// A hash of a resource's identity: its UID, or its kind and name if it has none.
fn hash(object: &Value) -> String {
    let part = |path: &[&str]| text(object, path).unwrap_or_default();
    let identity = match part(&["metadata", "uid"]) {
        "" => [part(&["kind"]), part(&["metadata", "namespace"]), part(&["metadata", "name"])]
            .join("/"),
        uid => uid.to_owned(),
    };
    naming::hex(&identity)
}

/// Connection details from texts.
pub(super) fn details<const N: usize>(entries: [(&str, &str); N]) -> ConnectionDetails {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).collect()
}

/// Writes Synced, Ready and, for asynchronous kinds, LastAsyncOperation. A failure of a ready
/// resource is a rejected change.
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

/// An operation on an existing resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Update it to the object's spec.
    Update,
    /// Delete it.
    Delete,
}

/// Reports a rejected operation on an existing resource. `Ready` is unchanged. LastAsyncOperation
/// also reports an operation that began in the background.
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

/// Waits until the Secret and key of a reference in `spec.forProvider` exist.
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
