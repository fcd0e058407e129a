//! Facts as data: offers of clouds and package indexes. Each figure names its source and month.

pub mod aws;
pub mod cloudsql;
pub mod gcp;
pub mod gpu;
pub mod opencv;
pub mod prices;
pub mod regions;
pub mod rights;
pub mod tags;
