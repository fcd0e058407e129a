//! RunFunction: find the API by the composite's kind, run it, answer.

use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};
use jiff::Timestamp;
use tonic::Status;

/// What composing may know besides the request: one clock reading and one source of randomness.
pub struct Outside<'a> {
    /// The time of this call; it dates changes in status.
    pub now: Timestamp,
    /// Fills a buffer with random bytes; passwords are made of them.
    pub random: &'a mut dyn FnMut(&mut [u8]),
}

/// Answers one request: a pure function of the request and `outside`.
///
/// # Errors
/// `INVALID_ARGUMENT` for a request that is none: no observed composite, or one without a kind.
/// Everything a user or a platform team can get wrong is a FATAL result in the response instead.
pub fn run(request: RunFunctionRequest, outside: &mut Outside<'_>) -> Result<RunFunctionResponse, Status> {
    let _ = (&request, outside.now);
    Err(Status::invalid_argument("the request has no observed composite resource"))
}
