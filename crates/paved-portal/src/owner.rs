//! The owner of a request's environments.

use std::fmt::Write as _;

pub(super) use paved_client::environment::{OWNER as ANNOTATION, OWNER_LABEL as LABEL};
pub(super) use paved_client::owner::{Owner, hash};

use super::access::Access;
use super::identity::{Naming, Person};
use super::problem::Problem;

/// The owner with a name in a request, in Kubernetes' form or as a login. It is the user, or
/// another one that the user may act for.
pub(super) async fn named(
    naming: &Naming,
    access: &Access,
    person: &Person,
    name: Option<&str>,
) -> Result<Owner, Problem> {
    let Some(name) = name.filter(|name| !person.is_called(name)) else { return Ok(person.owner()) };
    let username = naming.username(name);
    if !access.may_act_for(person, &username).await? {
        let detail = format!(
            "owner: found {name:?}; you are {:?}, and may not act for others",
            person.login()
        );
        return Err(Problem::forbidden(detail));
    }
    let (login, issuer) = naming.login(&username);
    Ok(Owner::new(login, issuer, &username))
}

/// Random letters and digits for a name.
pub(super) fn unique(bytes: usize) -> Result<String, Problem> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|error| {
        tracing::error!(%error, "the operating system returned no random numbers");
        Problem::new(
            http::StatusCode::INTERNAL_SERVER_ERROR,
            "The operating system returned no random numbers. Try again in a moment.",
        )
    })?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
