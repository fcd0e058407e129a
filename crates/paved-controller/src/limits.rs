//! Times of the controller. Tests shorten them.

use std::time::Duration;

/// Times of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often the leader looks for ends that have passed.
    pub tick: Duration,
    /// How long a Lease is valid without a renewal: another replica takes over then.
    pub lease: Duration,
    /// How long a replica leads after a renewal. Shorter than `lease`.
    pub lead: Duration,
    /// How often the Lease is renewed or looked at.
    pub renew: Duration,
    /// How often the cluster is asked for its kinds.
    pub kinds: Duration,
    /// The same while no kind is known.
    pub unknown_kinds: Duration,
    /// The longest interruption of a watch with which a replica is ready.
    pub interrupted: Duration,
    /// The first pause before an environment that stays is looked at again.
    pub hold: Duration,
    /// The longest such pause.
    pub longest_hold: Duration,
    /// The longest time for one look at expired environments. Budgets and notifications come next.
    pub pass: Duration,
    /// How long prices must wait before they are added up again.
    pub budgets: Duration,
    /// The shortest time between two notes of sent events in the Lease.
    pub settle: Duration,
    /// How often the leader reads the ConfigMap with the namespaces again.
    pub namespaces: Duration,
    /// How long a receiver of notifications may take.
    pub answer: Duration,
    /// The first pause before a notification is sent again.
    pub resend: Duration,
    /// The longest such pause.
    pub longest_resend: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tick: Duration::from_secs(1),
            lease: Duration::from_secs(15),
            lead: Duration::from_secs(10),
            renew: Duration::from_secs(3),
            kinds: Duration::from_mins(1),
            unknown_kinds: Duration::from_secs(2),
            interrupted: Duration::from_mins(2),
            hold: Duration::from_secs(5),
            longest_hold: Duration::from_mins(10),
            pass: Duration::from_secs(5),
            budgets: Duration::from_secs(10),
            settle: Duration::from_secs(10),
            namespaces: Duration::from_mins(1),
            answer: Duration::from_secs(10),
            resend: Duration::from_secs(1),
            longest_resend: Duration::from_mins(1),
        }
    }
}
