//! The state of a client, as a number that is the same in every replica. So each replica can resume
//! a stream of another one.

use std::fmt::{self, Display, Formatter};

use sha2::{Digest, Sha256};

/// The sum of the hashes of all environments. Clients with the same environments have the same sum,
/// in any order and from any replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StateHash(u128);

/// The id of an event, `epoch-sequence-known`: the position of a client that has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResumeToken {
    /// The process that sent the last whole list, even if other processes have continued since.
    epoch: String,
    /// The number of changes since.
    sequence: u64,
    pub(super) known: StateHash,
}

impl StateHash {
    /// Hashes the text of one environment.
    pub(super) fn new(text: &str) -> Self {
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        Self(hash[..16].iter().fold(0, |number, byte| (number << 8) | u128::from(*byte)))
    }

    /// The sum with an environment.
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// The sum without an environment. This reverses an addition.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl ResumeToken {
    /// The state after a whole list.
    pub(super) fn first(epoch: &str, known: StateHash) -> Self {
        Self { epoch: epoch.to_owned(), sequence: 0, known }
    }

    /// The id that a client sends back. `None` if no portal wrote it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let parts: [&str; 3] = text.splitn(4, '-').collect::<Vec<_>>().try_into().ok()?;
        let [epoch, sequence, known] = parts;
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex(epoch) || !(1..=32).contains(&epoch.len()) || !is_hex(known) || known.len() != 32
        {
            return None;
        }
        let known = StateHash(u128::from_str_radix(known, 16).ok()?);
        Some(Self { epoch: epoch.to_owned(), sequence: sequence.parse().ok()?, known })
    }

    /// Continues with a change.
    pub(super) fn go_on(&mut self, step: StateHash) {
        self.sequence = self.sequence.saturating_add(1);
        self.known = self.known.with(step);
    }
}

impl Display for ResumeToken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{:032x}", self.epoch, self.sequence, self.known.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sum_depends_on_content_and_not_on_order() {
        let [a, b, newer] = ["a", "b", "newer"].map(StateHash::new);
        assert_eq!(a.with(b), b.with(a));
        assert_eq!(a.with(b).with(newer.without(a)), newer.with(b));
        assert_eq!(a.with(b).without(a), b);
        assert_eq!(a.without(a), StateHash::default());
        assert!(a != b && a.with(a) != a && a.with(a) != StateHash::default());
    }

    #[test]
    fn id_is_read_as_written() {
        let mut id = ResumeToken::first("4f2a", StateHash::new("a"));
        id.go_on(StateHash::new("b"));
        let text = id.to_string();
        assert!(text.starts_with("4f2a-1-") && text.len() == 7 + 32, "{text}");
        assert_eq!(ResumeToken::read(&text).unwrap(), id);
        let long = "f".repeat(33);
        for strange in [
            "",
            "4f2a-1",
            "4f2a-1-99ab",
            &text.replace('-', ""),
            &text.replace("4f2a", ""),
            &text.replace("4f2a", &long),
            &text.replace("4f2a", "x y"),
            &text.replace("-1-", "--1-"),
            &format!("{text}0"),
            &format!("{text}-1"),
        ] {
            assert_eq!(ResumeToken::read(strange), None, "{strange}");
        }
    }
}
