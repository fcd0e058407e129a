//! Flags that print a plan, and that confirm it.

use clap::{Args, ValueEnum};

/// Flags of commands with a plan.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Planning {
    /// Print the effects and a hash, without any change.
    #[arg(long, conflicts_with = "confirm", help_heading = "Plan")]
    pub(crate) plan: bool,

    /// Format of the plan [default: text].
    #[arg(short, long, value_name = "FORMAT", requires = "plan", help_heading = "Plan")]
    pub(crate) output: Option<PlanFormat>,

    /// Act without a question, and only if the plan still has this hash.
    #[arg(long, value_name = "HASH", value_parser = hash, help_heading = "Plan")]
    pub(crate) confirm: Option<String>,
}

/// Format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
}

/// The length of a hash, in hexadecimal digits.
pub(crate) const HASH_LENGTH: usize = 64;

fn hash(text: &str) -> Result<String, String> {
    let is_hash = text.len() == HASH_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let allowed =
        || format!("allowed: the hash that --plan prints, {HASH_LENGTH} hexadecimal digits");
    if is_hash { Ok(text.to_lowercase()) } else { Err(allowed()) }
}
