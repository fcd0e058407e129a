//! The limits of the portal's server: timeouts of clients, of the API server and of the OpenID
//! provider, intervals of repeated requests, and numbers of open streams.
//!
//! Sizes in bytes and the sizes of caches are constants of the modules that use them.

use std::time::Duration;

/// The limits of one portal. `paved portal` always uses the defaults. Tests use shorter ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for the head of a request, and the interval of HTTP/2 pings.
    pub request_head: Duration,
    /// The longest pause within the body of a request.
    pub body_pause: Duration,
    /// The longest wait for room for a body in memory.
    pub body_room: Duration,
    /// Time until a response begins. A stream begins within it too.
    pub response: Duration,
    /// The longest time for which a client reads none of the bytes that wait for it.
    pub stalled_client: Duration,
    /// Time for open requests, and then for open streams, to end when the portal stops.
    pub shutdown: Duration,
    /// How often the certificate's file is read again.
    pub certificate: Duration,

    /// Open streams of one person.
    pub streams_per_person: usize,
    /// Open streams of all people.
    pub streams: usize,
    /// Open WebSockets that have not sent a credential yet.
    pub anonymous_sockets: usize,
    /// Time for the first message of a WebSocket without a credential.
    pub first_message: Duration,
    /// Time for a client to take one event of its stream.
    pub event: Duration,
    /// The interval of heartbeats. Expired answers are renewed after a heartbeat.
    pub heartbeat: Duration,
    /// How long a stream continues with expired answers if the API server does not renew them.
    pub stale_access: Duration,

    /// Time for an answer of the API server, and time to wait for a turn to ask it.
    pub api_answer: Duration,
    /// How long all watches may be interrupted before streams end. An API server restarts sooner.
    pub interrupted_streams: Duration,
    /// How long all watches may be interrupted before the portal reports that it is not ready.
    pub interrupted_portal: Duration,
    /// Time until a watch reports an object that the portal has just written.
    pub own_write: Duration,
    /// The interval between reads of the cluster's kinds.
    pub kinds: Duration,
    /// Lifetime of an answer about a person's rights.
    pub access: Duration,
    /// Lifetime of an answer about the owner of a bearer token. Writes use the token itself.
    pub token: Duration,
    /// Lifetime of the rejection of a bearer token. The token may be valid a moment later.
    pub rejected_token: Duration,
    /// How often the portal reads the resources of environments that are being deleted, and the
    /// first pause after an environment was read.
    pub deletions: Duration,
    /// The longest pause for an environment with a readable resource.
    pub deletion_pause: Duration,
    /// The longest pause for an environment without a readable resource.
    pub hidden_deletion_pause: Duration,
    /// Time to read one environment that is being deleted.
    pub deletion_answer: Duration,

    /// Time for an answer of the OpenID provider.
    pub provider_answer: Duration,
    /// Lifetime of the provider's description and keys.
    pub provider: Duration,
    /// Time for a person to sign in.
    pub sign_in: Duration,
    /// How often ended sessions that have also expired are removed from the list.
    pub ended_sessions: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_head: Duration::from_secs(10),
            body_pause: Duration::from_secs(10),
            body_room: Duration::from_secs(5),
            response: Duration::from_secs(30),
            stalled_client: Duration::from_secs(30),
            shutdown: Duration::from_secs(20),
            certificate: Duration::from_mins(1),
            streams_per_person: 128,
            streams: 8192,
            anonymous_sockets: 256,
            first_message: Duration::from_secs(10),
            event: Duration::from_secs(10),
            heartbeat: Duration::from_secs(15),
            stale_access: Duration::from_mins(2),
            api_answer: Duration::from_secs(10),
            interrupted_streams: Duration::from_secs(10),
            interrupted_portal: Duration::from_mins(2),
            own_write: Duration::from_secs(2),
            kinds: Duration::from_secs(30),
            access: Duration::from_secs(20),
            token: Duration::from_secs(30),
            rejected_token: Duration::from_secs(10),
            deletions: Duration::from_secs(3),
            deletion_pause: Duration::from_secs(15),
            hidden_deletion_pause: Duration::from_mins(5),
            deletion_answer: Duration::from_secs(10),
            provider_answer: Duration::from_secs(10),
            provider: Duration::from_mins(10),
            sign_in: Duration::from_mins(10),
            ended_sessions: Duration::from_mins(5),
        }
    }
}
