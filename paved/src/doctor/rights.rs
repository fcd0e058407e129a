//! The caller's rights to environments in the namespace.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use paved_client::cluster::{ASK, Api, Cluster, Kind, Kinds};

use super::check::Check;
use crate::failure::Failure;

/// The number of concurrent reviews.
const CONCURRENCY: usize = 8;

/// The verbs for reading, and then the verbs for changing.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
const LOOKS: usize = 3;

/// The verbs for creating an environment.
const ASKS: [&str; 3] = ["get", "create", "patch"];

/// A line for all kinds or for each kind, and whether the caller may create no environment.
pub(super) async fn check(cluster: &Cluster, kinds: &Kinds) -> Result<(Vec<Check>, bool), Failure> {
    let questions = kinds.all().iter().flat_map(|kind| VERBS.map(|verb| (kind, verb)));
    let answers: Vec<bool> = stream::iter(questions)
        .map(|(kind, verb)| may(cluster, kind, verb))
        .buffered(CONCURRENCY)
        .try_collect()
        .await
        .map_err(|error| cluster.explain(&error, "check your rights"))?;
    let rows: Vec<&[bool]> = answers.chunks(VERBS.len()).collect();
    Ok((tell(kinds.all(), &rows, &cluster.namespace), is_denied(&rows)))
}

/// Whether the caller may create environments of no kind.
fn is_denied(rows: &[&[bool]]) -> bool {
    let may_ask =
        |row: &&[bool]| VERBS.iter().zip(*row).all(|(verb, may)| *may || !ASKS.contains(verb));
    !rows.is_empty() && !rows.iter().any(may_ask)
}

async fn may(cluster: &Cluster, kind: &Kind, verb: &str) -> kube::Result<bool> {
    let attributes = ResourceAttributes {
        group: Some(kind.resource.group.clone()),
        resource: Some(kind.resource.plural.clone()),
        namespace: Some(cluster.namespace.clone()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..Default::default()
        },
        ..Default::default()
    };
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// One line if the rights are the same for all kinds, or else one line for each kind. A missing
/// right is bad only if the caller may create no environment. Otherwise, the platform team may have
/// decided so.
fn tell(kinds: &[Kind], rows: &[&[bool]], namespace: &str) -> Vec<Check> {
    let denied = is_denied(rows);
    let line = |what, may: &[bool], kind: &str| line(what, may, kind, denied);
    let alike = rows.windows(2).all(|pair| pair[0] == pair[1]);
    match rows.first() {
        None => Vec::new(),
        Some(first) if alike => {
            vec![line(
                format!("your rights in {namespace}"),
                first,
                &format!("all {} kinds", kinds.len()),
            )]
        }
        Some(_) => kinds
            .iter()
            .zip(rows)
            .map(|(kind, row)| line(format!("your rights in {namespace}"), row, &kind.full_name()))
            .collect(),
    }
}

fn line(what: String, may: &[bool], kind: &str, denied: bool) -> Check {
    let missing: Vec<&str> =
        VERBS.iter().zip(may).filter(|(_, may)| !**may).map(|(verb, _)| *verb).collect();
    if missing.is_empty() {
        Check::good(what, format!("{} {kind}", VERBS.join(", ")))
    } else {
        let missing = missing.join(", ");
        let said = if may[..LOOKS].iter().all(|may| *may) {
            format!("you may read {kind}, but not {missing}")
        } else {
            format!("you may not {missing} {kind}")
        };
        if denied {
            Check::bad(what, said, ASK)
        } else {
            Check::open(what, format!("{said}: {ASK}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use paved_client::samples::kinds;

    use super::*;
    use crate::style::Mark;

    #[test]
    fn equal_rights_share_a_line() {
        let all = kinds();
        let (user, viewer, nobody) =
            ([true; 6], [true, true, true, false, false, false], [false; 6]);
        let marks = |rows: [&[bool]; 3]| {
            tell(all.all(), &rows, "team").iter().map(|check| check.mark).collect::<Vec<_>>()
        };
        assert_eq!(marks([&user, &user, &user]), [Mark::Good]);
        assert_eq!(marks([&viewer, &viewer, &viewer]), [Mark::Bad]);
        assert_eq!(marks([&nobody, &viewer, &viewer]), [Mark::Bad, Mark::Bad, Mark::Bad]);
        assert_eq!(marks([&nobody, &user, &viewer]), [Mark::Busy, Mark::Good, Mark::Busy]);
        assert!(is_denied(&[&viewer, &nobody]) && !is_denied(&[&viewer, &user]) && !is_denied(&[]));
        assert!(tell(&[], &[], "team").is_empty());
    }
}
