//! Developer tasks, and code that they share with the tests of the workspace: paths, tools and
//! packages.

pub mod behaviour;
pub mod bench;
pub mod chart;
pub mod cloud_check;
pub mod composed;
pub mod cycles;
pub mod eol;
mod facts;
pub mod forward;
pub mod generate;
pub mod guide;
pub mod markdown;
pub mod node;
pub mod opencv;
pub mod package;
pub mod pages;
pub mod prices;
pub mod prose;
pub mod python;
pub mod release;
pub mod released;
pub mod render;
pub mod schemas;
pub mod server;
pub mod tools;
pub mod versions;
pub mod words;
pub mod workspace;
pub mod yaml;
