//! provider-kubernetes: an object in a cluster, if it cannot be composed natively.

use serde_json::Value;

use super::{Kind, Managed};

impl Managed for Object {
    const KIND: Kind = Kind::kubernetes("Object").spec_fields(&["readiness", "watch"]);
    type Status = ObjectStatus;
}

model! {
    /// A Kubernetes object, wrapped.
    pub struct Object {
        /// The object. All readers of Objects can read it, so it must never be a Secret.
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub manifest: Option<Value>,
    }

    /// The observed state of the object.
    pub struct ObjectStatus {
        /// The object as its cluster stores it.
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub manifest: Option<Value>,
    }
}
