//! One paragraph on why it failed: the part, its kind, its id in the cloud, the provider's words, and what helps.

use std::time::Duration;

use function_paved_road::compose::ResourceStatus;

use crate::environment::{Blocker, spell};

/// What providers say in lower case, and what helps then. The first that fits counts.
const CAUSES: &[(&[&str], &str)] = &[
    (
        &[
            "insufficientinstancecapacity",
            "insufficient capacity",
            "resource_pool_exhausted",
            "stockout",
            "skunotavailable",
            "insufficientdbinstancecapacity",
            "sufficient capacity",
            "allocation failed",
            "overconstrained",
            "currently not available in location",
        ],
        "The cloud has none left there just now: try again later, or ask for another machine type or region.",
    ),
    (
        &[
            "requestlimitexceeded",
            "toomanyrequests",
            "too many requests",
            "throttl",
            "rate exceeded",
            "ratelimit",
        ],
        "The cloud is asked too often just now: the provider tries again by itself.",
    ),
    (
        &["limitexceeded", "limit exceeded", "quota", "toomany", "vcpu limit", "exceeded your maximum"],
        "The account's quota is used up: ask for less, delete what nobody needs, or have the quota raised.",
    ),
    (
        &[
            "expiredtoken",
            "invalidclienttokenid",
            "unrecognizedclient",
            "invalid_grant",
            "cannot get credentials",
        ],
        "The provider's own credentials do not hold: the platform team has to renew them.",
    ),
    (
        &["invalidpermission.duplicate"],
        "The same rule is there already, made by somebody else: delete that one.",
    ),
    (
        &[
            "alreadyexists",
            "already exists",
            "already own",
            "alreadyown",
            "bucket name is not available",
            "duplicate",
        ],
        "The name is taken: name the environment otherwise, or delete what has the name.",
    ),
    (
        &[
            "accessdenied",
            "access denied",
            "unauthorizedoperation",
            "forbidden",
            "permission",
            "not authorized",
            "authorizationfailed",
        ],
        "The provider's identity may not do this: the platform team has to grant it.",
    ),
    (
        &["invalidamiid", "invalidsubnetid", "invalidvpcid", "dbsubnetgroupnotfound", "global/networks"],
        "The platform's Settings name something that does not exist there: the platform team has to correct them.",
    ),
];

/// What to say of what has stood in the way for that long.
pub(super) fn paragraph(blocker: &Blocker, time: Duration) -> String {
    let (why, message) = match blocker {
        Blocker::Part(part) => (refused(part, time), part.message.as_deref().unwrap_or_default()),
        Blocker::Whole(message) => {
            (format!("has not moved for {}: {message}", spell(time)), message.as_str())
        }
        Blocker::Uncomposed(message) => (format!("has not moved for {}: {message}.", spell(time)), ""),
    };
    let accepted = !matches!(blocker, Blocker::Part(part) if part.reason.as_deref() == Some("NotAccepted"));
    let helps =
        if accepted { cause(message) } else { Some("`paved doctor` says which provider is missing.") };
    let rest = "Once the cause is gone it goes on by itself: wait again then.";
    [Some(why.as_str()), helps, Some(rest)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn refused(part: &ResourceStatus, time: Duration) -> String {
    let id = part.external_name.as_deref().or(part.name.as_deref());
    let id = id.map(|id| format!(", {id}")).unwrap_or_default();
    let message = part.message.as_deref().unwrap_or("without a word");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let stop = if message.ends_with('.') { "" } else { "." };
    format!("has failed: {} ({}{id}) was refused for {}: {message}{stop}", part.slot, part.kind, spell(time))
}

fn cause(message: &str) -> Option<&'static str> {
    let message = message.to_lowercase();
    CAUSES.iter().find(|(words, _)| words.iter().any(|word| message.contains(word))).map(|(_, helps)| *helps)
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_commonest_causes_have_a_remedy() {
        for (message, helps) in [
            ("VcpuLimitExceeded: You have requested more vCPU capacity than your current limit", "quota"),
            ("googleapi: Error 403: Quota 'CPUS' exceeded", "quota"),
            ("UnauthorizedOperation: You are not authorized to perform this operation", "grant"),
            ("BucketAlreadyExists: The requested bucket name is not available", "taken"),
            ("InsufficientInstanceCapacity: We currently do not have sufficient p4d capacity", "none left"),
            ("ZONE_RESOURCE_POOL_EXHAUSTED", "none left"),
            (
                "googleapi: Error 409: The requested bucket name is not available. The bucket namespace is shared by all users \
                 of the system. Please select a different name and try again., conflict",
                "taken",
            ),
            (
                "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own it., \
                 conflict",
                "taken",
            ),
            (
                "InsufficientDBInstanceCapacity: Cannot create a db.t2.micro database instance because there are no \
                 availability zones with sufficient capacity for non-VPC and storage type : gp2",
                "none left",
            ),
            ("OverconstrainedZonalAllocationRequest", "none left"),
            (
                "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.",
                "quota",
            ),
            ("Allocation failed. VM(s) with the following constraints cannot be allocated", "none left"),
            ("Code=\"SkuNotAvailable\" Message=\"The requested size for resource is\"", "none left"),
            (
                "The requested VM size Standard_D4s_v3 is currently not available in location 'westeurope'",
                "none left",
            ),
            ("ExpiredToken: the security token has expired", "credentials"),
            ("InvalidAMIID.NotFound: The image id does not exist", "Settings"),
        ] {
            assert!(
                cause(message).is_some_and(|text| text.contains(helps)),
                "{message}: {:?}",
                cause(message)
            );
        }
        assert_eq!(cause("something else"), None);
    }
}
