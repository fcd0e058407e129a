//! provider-kubernetes: an object in a cluster, for flavours and places where it cannot be composed
//! natively.

use serde_json::Value;

use super::{Kind, Managed};

impl Managed for Object {
    const KIND: Kind = Kind::kubernetes("Object").spec_fields(&["readiness", "watch"]);
    type Status = ObjectStatus;
}

model! {
    /// A Kubernetes object, wrapped.
    pub struct Object {
        /// The object. Every reader of Objects sees it: never a Secret.
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub manifest: Option<Value>,
    }

    /// What became of the object.
    pub struct ObjectStatus {
        /// The object as its cluster has it.
        #[schemars(with = "serde_json::Map<String, Value>")]
        pub manifest: Option<Value>,
    }
}
