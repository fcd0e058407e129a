//! The table of causes, by texts of providers, Crossplane and this function.

use super::Code;

/// Words and their cause.
pub(super) struct Row {
    /// Lower-case texts. A message has to contain one of them. ` & ` separates texts that must all
    /// be in the message.
    words: &'static [&'static str],
    /// The cause.
    pub code: Code,
    /// The effect on the state of the resource.
    pub effect: Effect,
}

/// The effect of an error of a provider on the state of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The resource has failed.
    Fails,
    /// The resource waits.
    Waits,
    /// The resource waits while another resource of its environment is not ready. Otherwise it has
    /// failed.
    WaitsForSiblings,
}

impl Row {
    /// Whether a message in lower case contains the texts.
    pub fn fits(&self, lower: &str) -> bool {
        self.words.iter().any(|words| words.split(" & ").all(|word| lower.contains(word)))
    }
}

const fn row(code: Code, effect: Effect, words: &'static [&'static str]) -> Row {
    Row { words, code, effect }
}

/// The first row that fits wins.
pub(super) static TABLE: &[Row] = &[
    // Crossplane's texts about an environment that it cannot compose.
    row(
        Code::Uncomposed,
        Effect::Fails,
        &[
            "cannot select composition",
            "cannot select a composition",
            "no compatible compositions",
            "cannot fetch composition",
            "cannot run composition pipeline step",
        ],
    ),
    row(
        Code::WaitsForSecret,
        Effect::Waits,
        &[
            "cannot get credentials secret",
            "cannot get connection secret",
            "cannot get secret",
            "secret & not found",
        ],
    ),
    row(
        Code::WaitsFor,
        Effect::Waits,
        &[
            "cannot resolve reference",
            "referenced field was empty",
            "cannot get referenced resource",
            "connection refused",
            "no such host",
        ],
    ),
    // Crossplane's runtime for providers.
    row(Code::CreationUnknown, Effect::Fails, &["cannot determine creation result"]),
    row(
        Code::NoCapacity,
        Effect::Fails,
        &[
            "insufficientinstancecapacity",
            "insufficient capacity",
            "insufficient-capacity",
            "resource_pool_exhausted",
            "stockout",
            "skunotavailable",
            "insufficientdbinstancecapacity",
            "sufficient capacity",
            "allocation failed",
            "overconstrained",
            "currently not available in location",
        ],
    ),
    row(
        Code::Throttled,
        Effect::Fails,
        &[
            "requestlimitexceeded",
            "toomanyrequests",
            "too many requests",
            "throttl",
            "rate exceeded",
            "ratelimit",
        ],
    ),
    row(
        Code::QuotaExceeded,
        Effect::Fails,
        &[
            "limitexceeded",
            "limit exceeded",
            "quota",
            "toomany",
            "vcpu limit",
            "exceeded your maximum",
        ],
    ),
    row(
        Code::ProviderConfigMissing,
        Effect::Fails,
        &[
            "cannot get referenced providerconfig",
            "cannot get referenced provider config",
            "cannot get providerconfig",
            "providerconfig & not found",
            // Our own text: the providers of the clouds report no error.
            "its provider has not answered",
        ],
    ),
    row(
        Code::CredentialsInvalid,
        Effect::Fails,
        &[
            "expiredtoken",
            "invalidclienttokenid",
            "unrecognizedclient",
            "signaturedoesnotmatch",
            "invalid_grant",
            "could not find default credentials",
            "cannot get credentials",
        ],
    ),
    row(
        Code::NameTaken,
        Effect::Fails,
        &[
            "alreadyexists",
            "already exists",
            "already own",
            "alreadyown",
            "bucket name is not available",
            "name that is still in use",
            "duplicate",
        ],
    ),
    row(
        Code::AccessDenied,
        Effect::Fails,
        &[
            "accessdenied",
            "access denied",
            "unauthorizedoperation",
            "forbidden",
            "permission",
            "not authorized",
            "authorizationfailed",
            "organization policy",
            "requestdisallowedbypolicy",
        ],
    ),
    row(
        Code::SettingsReference,
        Effect::Fails,
        &[
            "invalidamiid",
            "invalidsubnetid",
            "invalidvpcid",
            "dbsubnetgroupnotfound",
            "global/networks",
        ],
    ),
    row(Code::ProviderMissing, Effect::WaitsForSiblings, &["no matches for kind"]),
    // A name that the function chose can be referred to before its resource exists.
    row(
        Code::Unknown,
        Effect::WaitsForSiblings,
        &[
            "nosuchentity",
            "notfound",
            "not found",
            "doesnotexist",
            "does not exist",
            "invalid iam instance profile",
        ],
    ),
];
