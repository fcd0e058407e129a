//! The real control plane on loopback, the stand-in for clouds that cannot run there, and the scenarios that prove the
//! product on both.

pub mod control_plane;
pub mod stand_in;
pub mod up;
