//! Sample clusters and environments, for the tests of this crate and of the crates that use it.

pub use crate::cluster::samples::{kinds, nowhere};
pub use crate::environment::samples::{
    creating, environment, half_made, ready, refused_leaf, set, uncomposed, unsynced,
};
