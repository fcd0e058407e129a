//! The product on a real control plane. Contains the control plane, fake providers for clouds that
//! cannot run there, and the scenarios that test the product on both.

pub mod control_api;
pub mod control_plane;
pub mod controller;
pub mod environment;
pub mod eventually;
pub mod examples;
pub mod fake_cdn;
pub mod fake_providers;
pub mod fixture;
pub mod kubeconfig;
pub mod kubectl;
pub mod matrix;
pub mod next_release;
pub mod objects;
pub mod openid;
pub mod paved;
pub mod playwright;
pub mod portal;
pub mod scenarios;
pub mod signals;
pub mod up;
