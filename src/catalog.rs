//! Facts as data: what clouds and package indexes offer, with the place and month each figure comes
//! from.

pub mod aws;
pub mod cloudsql;
pub mod gcp;
pub mod gpu;
pub mod opencv;
pub mod prices;
pub mod rights;
pub mod tags;
