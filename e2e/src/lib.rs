//! The product on a real control plane. Contains the control plane, fake providers for clouds that
//! cannot run there, and the scenarios that test the product on both.

pub mod control_plane;
pub mod edge;
pub mod environment;
pub mod eventually;
pub mod examples;
pub mod kubeconfig;
pub mod kubectl;
pub mod later;
pub mod matrix;
pub mod objects;
pub mod openid;
pub mod paved;
pub mod playwright;
pub mod portal;
pub mod remote;
pub mod scenarios;
pub mod signals;
pub mod stage;
pub mod stand_in;
pub mod up;
