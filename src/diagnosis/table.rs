//! The table of causes, by error codes and texts of providers, Crossplane and this function.
//!
//! A row is found by the shape of a message, in this order: texts that decide alone, error codes,
//! prose, and the HTTP status. Refusals stand before waits. `corpus.tsv` has real messages, and a
//! test compares them with this table.

use super::Code;
use super::reading::Reading;

/// A shape of messages and its cause.
pub(super) struct Row {
    /// The cause.
    pub code: Code,
    /// The effect on the state of the resource.
    pub effect: Effect,
    /// Error codes, see [`Reading::has_code`].
    codes: &'static [&'static str],
    /// Texts of the prose, see [`Reading::says`].
    texts: &'static [&'static str],
    /// A parameter of the cause.
    pub param: Option<(&'static str, &'static str)>,
}

/// The effect of an error of a provider on the state of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The resource has failed.
    Fails,
    /// The resource waits.
    Waits,
    /// The resource waits while a resource that it refers to is not ready. Otherwise it has failed.
    WaitsForSiblings,
    /// The resource waits while a resource that it refers to is not ready, and for a host that
    /// belongs to its environment. Otherwise it has failed.
    WaitsForHost,
}

impl Row {
    const fn codes(self, codes: &'static [&'static str]) -> Self {
        Self { codes, ..self }
    }

    const fn texts(self, texts: &'static [&'static str]) -> Self {
        Self { texts, ..self }
    }

    const fn param(self, name: &'static str, value: &'static str) -> Self {
        Self { param: Some((name, value)), ..self }
    }
}

const fn row(code: Code, effect: Effect) -> Row {
    Row { code, effect, codes: &[], texts: &[], param: None }
}

/// The row of a message.
pub(super) fn find(reading: &Reading<'_>) -> Option<&'static Row> {
    let fits = |row: &&Row| reading.has_code(row.codes) || reading.says(row.texts);
    FIRST
        .iter()
        .find(fits)
        .or_else(|| TABLE.iter().find(|row| reading.has_code(row.codes)))
        .or_else(|| TABLE.iter().find(|row| reading.says(row.texts)))
        .or_else(|| {
            let of_status = BY_STATUS.iter().find(|(status, _)| Some(*status) == reading.status);
            BY_CODE.iter().find(fits).or(of_status.map(|(_, row)| row))
        })
        .or_else(|| LAST.iter().find(fits))
}

use Code::{
    AccessDenied, ChartNotFound, CreationUnknown, CredentialsInvalid, DatabaseAdministrator,
    NameTaken, NoCapacity, ProviderConfigMissing, ProviderMissing, QuotaExceeded,
    ServiceNotEnabled, SettingsReference, Throttled, Uncomposed, Unknown, Unreachable, WaitsFor,
    WaitsForSecret,
};
use Effect::{Fails, Waits, WaitsForHost, WaitsForSiblings};

/// Texts that decide alone, regardless of the rest of a message.
static FIRST: &[Row] = &[
    // Crossplane's texts about an environment that it cannot compose.
    row(Uncomposed, Fails).texts(&[
        "cannot select composition",
        "cannot select a composition",
        "no compatible compositions",
        "cannot fetch composition",
        "cannot run composition pipeline step",
    ]),
    // The words of a chart. Source: Helm, `pkg/engine/engine.go` and `pkg/chartutil`.
    row(Unknown, Fails).texts(&[
        "execution error at (",
        "parse error at (",
        "yaml parse error on ",
        "values don't meet the specifications of the schema",
        "error calling include",
        "unable to build kubernetes objects from release manifest: error validating",
    ]),
    // Kubernetes forbids it, but only until the namespace or the old object is gone.
    row(WaitsFor, Waits)
        .texts(&["because it is being terminated"])
        .param("for", "the deletion of its namespace"),
    row(WaitsFor, Waits)
        .texts(&["object is being deleted"])
        .param("for", "the deletion of the old object"),
    // Admission of pods: an object of the cluster is missing, which is not a right.
    row(Unknown, WaitsForSiblings).texts(&[
        "is forbidden: error looking up",
        "is forbidden: no priorityclass",
        "is forbidden: no api token found",
        "is forbidden: pod rejected: runtimeclass",
    ]),
    // A field that may not change. Source: apimachinery, `pkg/util/validation/field/errors.go`.
    row(Unknown, Fails).texts(&["is invalid: & : forbidden: "]),
    // Files of the provider's own container.
    row(Unknown, Fails).texts(&[
        "mkdir / & permission denied",
        "open / & permission denied",
        "chmod / & permission denied",
        "read-only file system",
        "no space left on device",
    ]),
    // Helm gave up on the objects of a chart. Their state is not an operation of a cloud.
    row(Unknown, Fails)
        .texts(&["resource not ready, name:", "timed out waiting for the condition"]),
    // Crossplane's runtime for providers.
    row(CreationUnknown, Fails).texts(&["cannot determine creation result"]),
    // A release that an interrupted provider left. It never ends.
    row(Unknown, Fails).texts(&["operation (install/upgrade/rollback) is in progress"]),
    // Hooks of charts. The code of a Job is not a limit of a cloud.
    row(Unknown, Fails)
        .codes(&["backofflimitexceeded", "deadlineexceeded", "progressdeadlineexceeded"])
        .texts(&["failed pre-install", "failed post-install", "upgrade hooks failed"]),
    // Accounts that a cloud has not accepted yet, or has blocked.
    row(AccessDenied, Fails)
        .codes(&["pendingverification", "blocked", "accountproblem", "notsignedup"])
        .texts(&[
            "account must be verified",
            "account is currently blocked",
            "account is being verified",
        ])
        .param("conflict", "account"),
    row(AccessDenied, Fails)
        .codes(&["requestdisallowedby*", "scopelocked"])
        .texts(&[
            "organization policy",
            "violates constraint",
            "constraint constraints/",
            "constraints/",
            "service control policy",
            "disallowed by policy",
            "disallowed by azure",
            "violates podsecurity",
            "denied the request",
            "denied request:",
            "policy & blocked",
        ])
        .param("conflict", "policy"),
];

/// The shapes. The first row with a code of the message wins, else the first with a text of it.
static TABLE: &[Row] = &[
    row(NoCapacity, Fails)
        .codes(&[
            "insufficient*capacity*",
            "unsupportedavailabilityzone*",
            "spotmaxpricetoolow",
            "*resource_pool_exhausted*",
            "*stockout*",
            "skunotavailable",
            "*allocationfailed",
            "*allocationrequest",
            "overconstrained*",
            "notavailableforsubscription",
            "locationnotavailableforresourcetype",
            "availabilityzonenotsupported",
            "*capacityheavyusage",
            "akscapacityerror",
            "*capacityexceeded",
            "unfulfillablecapacity",
        ])
        .texts(&[
            "insufficient capacity",
            "insufficient-capacity",
            "sufficient capacity",
            "not supported in your requested availability zone",
            "is not supported in the requested availability zone",
            "do not have sufficient",
            "does not have enough resources available",
            "not have enough resources",
            "resource pool exhausted",
            "is currently unavailable in the",
            "currently not available in location",
            "not allowed in your subscription in location",
            "is not available in location",
            "is not available in the current region",
            "allocation failed",
            "not enough capacity",
            "no capacity",
        ]),
    row(Throttled, Fails)
        .codes(&[
            "*throttl*",
            "requestlimitexceeded",
            "toomanyrequests*",
            "*ratelimitexceeded*",
            "rate_limit_exceeded",
            "slowdown",
            "provisionedthroughputexceeded*",
        ])
        .texts(&[
            "rate exceeded",
            "too many requests",
            "throttl",
            "rate limit",
            "toomanyrequests",
            "per minute per user",
        ]),
    row(QuotaExceeded, Fails)
        .codes(&[
            "*limitexceeded*",
            "*quotaexceeded*",
            "quota_exceeded",
            "*insufficient*quota*",
            "insufficientsubnet*",
            "toomany*",
            "*limitreached*",
            "insufficientfreeaddresses*",
            "insufficientipaddress*",
            "ip_space_exhausted*",
            "subnetisfull",
            "max*count*exceeded",
            "53300",
        ])
        .texts(&[
            "exceeded quota:",
            "quota & exceeded",
            "quota & exceeding",
            "quota & exceeds",
            "insufficient & quota",
            "not enough quota",
            "quota & has been reached",
            "limit exceeded",
            "cannot exceed quota",
            "vcpu limit",
            "exceeded your maximum",
            "maximum number of & reached",
            "exceeds the maximum number",
            "exceeded the maximum",
            "not have enough free addresses",
            "not enough free ip",
            "too many clients already",
            "remaining connection slots are reserved",
            "is forbidden: maximum ",
            "limit to be exceeded",
            "has reached the max",
            "has reached & limit",
            "reached your & quota",
            "reached your & limit",
            "reached the & quota",
            "reached the & limit",
            "failed quota:",
            "is forbidden: minimum ",
            "too many connections",
            "maximum allowed is",
        ]),
    row(ServiceNotEnabled, Fails)
        .codes(&[
            "accessnotconfigured",
            "service_disabled",
            "missing*registration*",
            "optinrequired",
            "subscriptionrequired*",
            "subscriptionnotregistered",
            "noregisteredproviderfound",
            "*notregistered",
            "billing_disabled",
            "billingdisabled",
            "readonlydisabledsubscription",
        ])
        .texts(&[
            "has not been used in project",
            "has not enabled the api",
            "api is not enabled",
            "api & not been enabled",
            "it is disabled. enable it by visiting",
            "not registered to use namespace",
            "is not subscribed to",
            "not subscribed to this service",
            "needs a subscription for the service",
            "billing to be enabled",
            "billing must be enabled",
            "billing account & disabled",
            "not opted in",
        ]),
    row(CredentialsInvalid, Fails)
        .codes(&[
            "authfailure",
            "requestexpired",
            "expiredtoken*",
            "invalidaccesskeyid",
            "invalidclienttokenid",
            "unrecognizedclient*",
            "signaturedoesnotmatch",
            "incompletesignature*",
            "missingauthenticationtoken*",
            "invalididentitytoken*",
            "idprejectedclaim*",
            "nocredentialproviders",
            "notoken*",
            "aadsts*",
            "invalid_grant",
            "invalid_client",
            "unauthorized_client",
            "invalid_rapt",
            "expiredauthenticationtoken",
            "invalidauthenticationtoken*",
            "authenticationfailed*",
            "invalidsubscriptionid",
            "subscriptionnotfound",
            "requesttimetooskewed",
            "28p01",
        ])
        .texts(&[
            "no ec2 imds role found",
            "no valid credential sources",
            "no valid providers in chain",
            "static credentials are empty",
            "credentials are empty",
            "could not find default credentials",
            "no openidconnect provider found",
            "validate the provided access credentials",
            "security token included in the request is expired",
            "security token included in the request is invalid",
            "authentication failed.",
            "authentication failed:",
            "password authentication failed",
            "authentication required",
            "invalid jwt",
            "invalid username or password",
            "private key should be a pem",
            "unexpected end of json input & credentials",
            "invalid character & credentials",
            "credentials are not valid",
            "web identity token file",
            "no auth information",
            "client to provide credentials",
            "failed to refresh token",
            "invalid_grant",
            "cannot unmarshal credentials",
            "must be logged in to the server",
            "run 'az login'",
            "run \"az login\"",
        ]),
    row(NameTaken, Fails)
        .codes(&[
            "*alreadyexists*",
            "*already_exists*",
            "*alreadyown*",
            "*alreadytaken",
            "*alreadyinuse",
            "duplicate",
            "*.duplicate",
            "*namenotavailable",
            "dnsrecordinuse",
            "duplicate*name",
            "42710",
            "42p04",
            "42p06",
        ])
        .texts(&[
            "already exists",
            "already own",
            "bucket name is not available",
            "name is not available",
            "name that is still in use",
            "cannot be imported into the current release",
            "already being used",
            "already used",
            "already taken",
            "already in use",
            "already allocated",
            "already assigned",
            "already associated",
            "already reserved",
            "already scheduled for deletion",
            "with the same name",
        ]),
    // PostgreSQL 16 and later: a role with CREATEROLE is not enough for each statement.
    row(DatabaseAdministrator, Fails).codes(&["42501"]).texts(&[
        "permission denied to create role",
        "permission denied to alter role",
        "permission denied to drop role",
        "permission denied to grant role",
        "permission denied to grant privileges as role",
        "permission denied to revoke role",
        "permission denied to set role",
        "permission denied to create database",
        "permission denied to reassign objects",
        "permission denied to drop objects",
        "permission denied for tablespace",
        "permission denied for database",
        "permission denied for schema",
        "permission denied for table",
        "must be owner of ",
        "must be able to set role",
        "must be member of role",
        "must have admin option on role",
        "must be a superuser",
        "must be superuser",
        "must have the createrole attribute",
    ]),
    row(AccessDenied, Fails)
        .codes(&[
            "accessdenied*",
            "unauthorizedoperation",
            "unauthorizedaccess*",
            "*authorizationfailed",
            "insufficientpermission*",
            "iam_permission_denied",
            "access_token_scope_insufficient",
            "forbiddenexception",
            "notauthorized*",
        ])
        .texts(&[
            "is not authorized to perform",
            "not authorized to perform",
            "you are not authorized",
            "not authorized",
            "not have authorization",
            "not have permission",
            "not have the required permission",
            "access denied",
            "permission denied",
            "permission ' & denied",
            "permission & denied on",
            "required permission",
            "required \" & permission",
            "required ' & permission",
            "lacks permission",
            "insufficient permission",
            "insufficient authentication scopes",
            "explicit deny",
            "explicitly denied",
            "is forbidden: user",
            "is forbidden: ",
            "does not have access",
            "attempting to grant rbac permissions",
            "no pg_hba.conf entry",
            "denied: denied",
            "denied: requested access",
        ]),
    row(SettingsReference, Fails)
        .codes(&["tagpolicyviolation", "tagpolicyexception", "invalidtag*"])
        .texts(&["duplicate tag key", "tag keys are case insensitive", "reserved tag"])
        .param("problem", "rejected"),
    row(SettingsReference, Fails)
        .codes(&[
            "invalidamiid*",
            "invalidsubnetid*",
            "invalidvpcid*",
            "invalidsubnet",
            "invalidkeypair.notfound",
            "dbsubnetgroupnotfound*",
            "dbparametergroupnotfound*",
            "optiongroupnotfound*",
            "kmskeynotaccessible*",
            "invalidkmskey*",
            "invalidviewercertificate",
            "nosuchhostedzone",
            "resourcegroupnotfound",
            "subnetnotfound",
            "vnetnotfound",
            "virtualnetworknotfound",
            "invalidresourcereference",
            "linkedinvalidpropertyid",
            "network_not_peered",
        ])
        .texts(&[
            "does not exist or is not attachable",
            "not found: projects/",
            "not found: project ",
            "unknown project",
            "project & not found",
            "project & does not exist",
            "project & has been deleted",
            "global/networks & not found",
            "/subnetworks/ & not found",
            "network & does not exist",
            "has no network",
            "has no subnetwork",
            "subnetwork & does not exist",
            "private services connection",
            "resource group & could not be found",
            "resource group & not found",
            "subnet id & does not exist",
            "image id & does not exist",
            "role with arn & does not exist",
            "is not a valid subnet",
        ]),
    row(ChartNotFound, Fails).texts(&[
        "chart \" & not found in",
        "no chart version found for",
        "no chart name found",
        "chart not found",
        "invalid chart reference",
        "manifest unknown",
        "failed to pull chart & not found",
        "failed to perform & on source & not found",
        "failed to pull chart & 404",
        "valid chart repository & 404",
        "failed to fetch & 404",
        "improper constraint",
        "chart & matching & not found",
    ]),
    row(WaitsFor, Waits)
        .codes(&[
            "anotheroperationinprogress",
            "operationinprogress",
            "operationaborted",
            "concurrentmodification*",
            "conditionalrequestconflict",
            "invaliddbinstancestate*",
            "incorrectinstancestate",
            "resourcenotready*",
            "scopeoperationinprogress",
            "inprogress",
            "invalidstate",
            "priorrequestnotcomplete",
            "*deletedrecently",
            "*retryable*",
            "aborted",
            "57p03",
        ])
        .texts(&[
            "operation & in progress",
            "in progress & operation",
            "is currently in progress",
            "already in progress",
            "incompatible operation",
            "has been modified; please apply your changes",
            "update in progress",
            "object is being deleted",
            "is not in available state",
            "not in active state",
            "status is creating",
            "still being created",
            "currently being created",
            "currently being modified",
            "database system is starting up",
            "database system is shutting down",
            "database system is in recovery mode",
            "database system is not yet accepting connections",
            "is currently creating",
            "is currently updating",
            "is currently deleting",
            "is currently being",
            "please wait and try again",
            "please wait for",
            "please wait until",
            "try again once it is done",
            "not in an appropriate state",
            "processing a prior request",
            "still processing",
            "there were concurrent",
        ])
        .param("for", "another operation of its provider"),
    row(WaitsFor, Waits).texts(&["instance is not running", "cluster is not running"]),
    row(Unreachable, WaitsForHost).texts(&[
        "no such host",
        "connection refused",
        "connection reset by peer",
        "i/o timeout",
        "tls handshake timeout",
        "no route to host",
        "network is unreachable",
        "host is unreachable",
        "server misbehaving",
        "temporary failure in name resolution",
        "name or service not known",
        "could not translate host name",
        "could not resolve host",
        "client.timeout exceeded",
        "request canceled while waiting for connection",
        "dial tcp",
        "failed calling webhook",
        "no endpoints available for service",
        "address is not allowed",
        "http: server gave http response to https client",
        "\": tls: ",
        "tls: first record",
        "tls: handshake",
        "remote error: tls: ",
        "tls: failed to verify certificate",
        "proxyconnect tcp",
        "stream error: stream id",
        "x509: certificate",
        "unexpected eof",
        "\": eof",
        "\": context deadline exceeded",
        "the server is currently unable to handle the request",
        "connection timed out",
        "502 bad gateway",
        "503 service unavailable",
        "service \" & unavailable",
    ]),
    row(WaitsForSecret, Waits).texts(&[
        "secret \" & not found",
        "secrets \" & not found",
        "cannot get credentials secret",
        "cannot get connection secret",
        "cannot get secret",
        "in secret & not found",
        "couldn't find key & in secret",
    ]),
    row(ProviderConfigMissing, WaitsForSiblings).texts(&[
        "cannot get referenced providerconfig",
        "cannot get referenced provider config",
        "cannot get providerconfig",
        "cannot get clusterproviderconfig",
        "providerconfig & not found",
        "no providerconfigref",
        // The text of an older function: the providers of the clouds report no error.
        "its provider has not answered",
    ]),
    row(WaitsFor, Waits).texts(&[
        "cannot resolve reference",
        "referenced field was empty",
        "cannot get referenced resource",
        "no resources matched selector",
    ]),
    row(ProviderMissing, WaitsForSiblings).texts(&[
        "no matches for kind",
        "ensure crds are installed first",
        "the server could not find the requested resource",
    ]),
    // Chains of credentials, if no earlier row explains the error.
    row(CredentialsInvalid, Fails).texts(&[
        "cannot get credentials",
        "cannot extract credentials",
        "retrieve credentials",
        "refresh cached credentials",
        "error getting credentials",
        "failed to get credentials",
        "failed to obtain credentials",
        "failed to load credentials",
        "acquire a token",
        "acquire token",
        "generate access token",
        "cannot fetch token",
        "failed to obtain token",
        "credential: ",
        "credential authentication unavailable",
    ]),
];

/// General codes, for messages that no row explains better.
static BY_CODE: &[Row] = &[
    row(CredentialsInvalid, Fails)
        .codes(&["unauthenticated", "unauthorized"])
        .texts(&["unauthorized"]),
    row(QuotaExceeded, Fails).codes(&["resource_exhausted"]),
    row(AccessDenied, Fails).codes(&["forbidden", "permission_denied", "permissiondenied"]),
];

/// The HTTP status, for messages without a known code.
static BY_STATUS: &[(u16, Row)] = &[
    (401, row(CredentialsInvalid, Fails)),
    (403, row(AccessDenied, Fails)),
    (404, MISSING),
    (429, row(Throttled, Fails)),
];

/// A missing object. A name that the function chose can be referred to before its resource exists.
const MISSING: Row = row(Unknown, WaitsForSiblings);

/// The last rows.
static LAST: &[Row] = &[MISSING
    .codes(&["*notfound*", "nosuch*", "*doesnotexist*", "*notexist*", "not_found"])
    .texts(&[
        "not found",
        "does not exist",
        "doesn't exist",
        "cannot be found",
        "could not be found",
        "invalid iam instance profile",
        "invalid principal in policy",
        "cannot be assumed",
        "no cluster found",
    ])];
