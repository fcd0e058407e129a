//! The twenty traps of `provider-behaviour.md`: surprising behaviour of the real providers, all in
//! the simulator's model. A test shows that our composed resources avoid the trap. Where no
//! composition can, the test shows the message in the status.
//!
//! | # | trap | ends as | test in |
//! |---|---|---|---|
//! | 1 | late initialisation pins the version of EKS | avoided | [`clusters`] |
//! | 2 | AKS's version conflicts with its upgrade channel | avoided | [`clusters`] |
//! | 3 | Ready means "it can be read" | avoided | [`clusters`] |
//! | 4 | a chart spells its version differently | avoided | [`clusters`] |
//! | 5 | the identity of an RDS instance | avoided | [`servers`] |
//! | 6 | changes that wait for a window loop | avoided | [`servers`] |
//! | 7 | late-initialised fields are sent again | avoided; in the status for RDS | [`machines`], [`servers`] |
//! | 8 | an attached disk is late-initialised | in the status | [`machines`] |
//! | 9 | one immutable field refuses all changes | avoided, or in the status | [`machines`] |
//! | 10 | a restarted provider forgets its operations | in the status, or found by tags | [`machines`], [`clusters`] |
//! | 11 | names that are taken | avoided, or in the status | [`names`], [`servers`] |
//! | 12 | when values become known | avoided | [`timing`] |
//! | 13 | the connection Secret exists, but is empty | avoided | [`timing`] |
//! | 14 | operations end after an hour, deletions wait | in the status | [`timing`] |
//! | 15 | fields that are not late-initialised | avoided | [`names`] |
//! | 16 | Helm gives up | in the status | [`clusters`] |
//! | 17 | a missing provider config | in the status | [`timing`] |
//! | 18 | reads that hang | in the status | [`servers`] |
//! | 19 | roles of provider-sql are never up to date | in the status | [`servers`] |
//! | 20 | when providers poll | in the status | [`machines`] |

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod clusters;
mod environment;
mod machines;
mod names;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod timing;
