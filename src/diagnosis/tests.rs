#![allow(clippy::unwrap_used)]

use super::*;

/// A resource that its provider rejected with this message.
fn failed<'l>(kind: &'l str, message: &'l str) -> Line<'l> {
    Line { slot: "own", kind, reason: Some("Failed"), message: Some(message), ..Line::default() }
}

fn waiting<'l>(slot: &'l str, kind: &'l str, message: &'l str) -> Line<'l> {
    Line { slot, kind, reason: Some("Waiting"), message: Some(message), ..Line::default() }
}

fn sibling<'l>(slot: &'l str, kind: &'l str) -> Line<'l> {
    Line {
        slot,
        kind,
        reason: Some("Creating"),
        message: Some("is being created"),
        ..Line::default()
    }
}

fn first(lines: &[Line<'_>], api: Option<&str>) -> Option<Cause> {
    causes(lines, api).remove(0)
}

#[test]
fn provider_messages_lead_to_codes() {
    for (message, code) in [
        (
            "VcpuLimitExceeded: You have requested more vCPU capacity than your current limit",
            Code::QuotaExceeded,
        ),
        ("googleapi: Error 403: Quota 'CPUS' exceeded", Code::QuotaExceeded),
        ("the subscription has reached its limit of 40 servers", Code::QuotaExceeded),
        ("Project \"x\" has no subnetwork named \"pods\" in europe-west1", Code::SettingsReference),
        ("parsing credentials: invalid character 'x' in literal", Code::CredentialsInvalid),
        (
            "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.",
            Code::QuotaExceeded,
        ),
        (
            "ReplicaSet \"pool\" has timed out progressing: pods \"pool-\" is forbidden: exceeded quota: gpus, \
             requested: requests.nvidia.com/gpu=1",
            Code::QuotaExceeded,
        ),
        (
            "UnauthorizedOperation: You are not authorized to perform this operation",
            Code::AccessDenied,
        ),
        (
            "googleapi: Error 400: Invalid request: Organization Policy check failure: the external IP of this \
             instance violates the constraints/sql.restrictPublicIp",
            Code::AccessDenied,
        ),
        ("BucketAlreadyExists: The requested bucket name is not available", Code::NameTaken),
        (
            "googleapi: Error 409: The requested bucket name is not available. The bucket namespace is shared by \
             all users of the system. Please select a different name and try again., conflict",
            Code::NameTaken,
        ),
        (
            "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own \
             it., conflict",
            Code::NameTaken,
        ),
        ("InvalidPermission.Duplicate: the specified rule already exists", Code::NameTaken),
        (
            "cannot determine creation result - remove the crossplane.io/external-create-pending \
             annotation if it is safe to proceed",
            Code::CreationUnknown,
        ),
        (
            "InsufficientInstanceCapacity: We currently do not have sufficient p4d capacity",
            Code::NoCapacity,
        ),
        ("ZONE_RESOURCE_POOL_EXHAUSTED", Code::NoCapacity),
        ("its cloud reports the state insufficient-capacity", Code::NoCapacity),
        ("failed to install release: cannot re-use a name that is still in use", Code::NameTaken),
        (
            "InsufficientDBInstanceCapacity: Cannot create a db.t2.micro database instance because there are no \
             availability zones with sufficient capacity for non-VPC and storage type : gp2",
            Code::NoCapacity,
        ),
        ("OverconstrainedZonalAllocationRequest", Code::NoCapacity),
        (
            "Allocation failed. VM(s) with the following constraints cannot be allocated",
            Code::NoCapacity,
        ),
        (
            "Code=\"SkuNotAvailable\" Message=\"The requested size for resource is\"",
            Code::NoCapacity,
        ),
        (
            "The requested VM size Standard_D4s_v3 is currently not available in location 'westeurope'",
            Code::NoCapacity,
        ),
        ("RequestLimitExceeded: Request limit exceeded.", Code::Throttled),
        ("ThrottlingException: Rate exceeded", Code::Throttled),
        ("ExpiredToken: the security token has expired", Code::CredentialsInvalid),
        ("InvalidAMIID.NotFound: The image id does not exist", Code::SettingsReference),
        (
            "cannot get ProviderConfig: ProviderConfig.kubernetes.crossplane.io \"host\" not found",
            Code::ProviderConfigMissing,
        ),
        (
            "no matches for kind \"KnativeServing\" in version \"operator.knative.dev/v1beta1\"",
            Code::ProviderMissing,
        ),
        (
            "chart \"podinfo\" version \"6.9.2\" not found in https://example.org",
            Code::ChartNotFound,
        ),
        ("something else", Code::Unknown),
    ] {
        assert_eq!(first(&[failed("Thing", message)], None).unwrap().code, code, "{message}");
    }
}

#[test]
fn crossplane_messages_lead_to_codes() {
    for (message, code, headline) in [
        (
            "cannot select Composition: no compatible Compositions found",
            Code::Uncomposed,
            "Crossplane does not compose this environment",
        ),
        (
            "cannot compose resources: cannot run Composition pipeline step \"compose\": rpc error: code = \
             Unavailable desc = connection error: connection refused",
            Code::Uncomposed,
            "Crossplane does not compose this environment",
        ),
        (
            "cannot apply composed resource \"instance\": no matches for kind \"Instance\" in version \
             \"ec2.aws.upbound.io/v1beta2\"",
            Code::ProviderMissing,
            "The cluster has no kind Instance (ec2.aws.upbound.io/v1beta2)",
        ),
        ("something else", Code::Unknown, "Crossplane cannot compose this environment"),
    ] {
        let cause = composite_cause(message);
        assert_eq!((cause.code, cause.headline().as_str()), (code, headline), "{message}");
    }
}

#[test]
fn headlines_contain_the_names_of_the_message() {
    for (message, api, headline) in [
        (
            "async create failed: failed to create the resource: [{0 creating EC2 Instance: operation error EC2: \
             RunInstances, https response error StatusCode: 400, api error VcpuLimitExceeded: You have requested \
             more vCPU capacity than your current vCPU limit of 0 allows",
            None,
            "AWS EC2 quota exceeded: vCPUs",
        ),
        ("googleapi: Error 403: Quota 'CPUS' exceeded", None, "Google Cloud quota exceeded: CPUS"),
        (
            "pods \"a-\" is forbidden: exceeded quota: gpus, requested: x=1",
            None,
            "Kubernetes quota exceeded: gpus",
        ),
        (
            "exceeding approved Total Regional Cores quota",
            None,
            "Quota exceeded: Total Regional Cores",
        ),
        ("the quota is exceeded", None, "Quota exceeded"),
        (
            "operation error EC2: RunInstances, UnauthorizedOperation: User: arn:aws:iam::1:user/x is not \
             authorized to perform: ec2:RunInstances on resource: arn",
            None,
            "AWS EC2 denied ec2:RunInstances",
        ),
        ("AccessDenied", None, "The cloud denied access"),
        (
            "reading S3 Bucket (site): operation error S3: HeadBucket, https response error \
             StatusCode: 403, api error Forbidden: Forbidden",
            None,
            "AWS S3 denied access to the bucket",
        ),
        (
            "googleapi: Error 409: The Cloud SQL instance already exists. When you delete an \
             instance, you can't reuse the name of the deleted instance until one week from the \
             deletion date.",
            None,
            "The cloud reserves the name of a deleted resource",
        ),
        (
            "InvalidPermission.Duplicate: the rule already exists",
            None,
            "The firewall rule already exists",
        ),
        (
            "InvalidAMIID.NotFound: The image id '[ami-1]' does not exist",
            Some("gpu-workspace"),
            "settings.gpuWorkspace.amis names something that does not exist",
        ),
        (
            "InvalidSubnetID.NotFound",
            Some("virtual-environment"),
            "settings.environment.eks.subnetIds names something that does not exist",
        ),
        (
            "InvalidSubnetID.NotFound",
            Some("stock-pool"),
            "Settings name something that does not exist",
        ),
        (
            "cannot get ProviderConfig: ProviderConfig.kubernetes.crossplane.io \"host\" not found",
            None,
            "The provider cannot use ProviderConfig host (kubernetes.crossplane.io)",
        ),
        (
            "cannot get referenced ProviderConfig: \"default\"",
            None,
            "The provider cannot use its provider config",
        ),
        ("something else", None, "The Thing failed"),
    ] {
        assert_eq!(
            first(&[failed("Thing", message)], api).unwrap().headline(),
            headline,
            "{message}"
        );
    }
}

#[test]
fn silent_provider_of_an_older_function_names_its_config() {
    let message = "its provider has not answered for more than a minute: check that the ClusterProviderConfig \
                   default (aws.m.upbound.io) exists, and that the provider runs";
    let line = Line { reason: Some("Creating"), message: Some(message), ..failed("Role", "") };
    let cause = first(&[line], None).unwrap();
    let params =
        [("config", "default"), ("kind", "ClusterProviderConfig"), ("group", "aws.m.upbound.io")];
    assert_eq!(cause, Cause::new(Code::ProviderConfigMissing, params));
    assert_eq!(cause.provider_config(), "ClusterProviderConfig default (aws.m.upbound.io)");
}

#[test]
fn waiting_resource_names_its_prerequisite() {
    let slot = |slot: &'static str| Some(("slot", slot));
    for (message, siblings, awaited) in [
        (
            "cannot resolve references: mg.Spec.ForProvider.SecurityGroupID: referenced field was empty \
             (referenced resource may not yet be ready)",
            vec![sibling("security-group", "SecurityGroup"), sibling("role", "Role")],
            slot("security-group"),
        ),
        (
            "Value (ada-x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
            vec![sibling("instance-profile", "InstanceProfile"), sibling("role", "Role")],
            slot("instance-profile"),
        ),
        (
            "async create failed: [{0 Error creating Database: googleapi: Error 404: The Cloud SQL instance does \
             not exist., instanceDoesNotExist  []}]",
            vec![sibling("cloudsql-instance", "DatabaseInstance"), sibling("bucket", "Bucket")],
            slot("cloudsql-instance"),
        ),
        (
            "NoSuchEntity: The role with name ada-x-role cannot be found",
            vec![
                sibling("boundary", "Policy"),
                Line { external_name: Some("ada-x-role"), ..sibling("trust", "Role") },
            ],
            slot("trust"),
        ),
        ("waits for something else", vec![], None),
        (
            "cannot resolve references: mg.Spec.ForProvider.Cluster: referenced field was empty",
            vec![Line { ready: true, ..sibling("cluster", "Cluster") }],
            None,
        ),
    ] {
        let mut lines = vec![waiting("own", "Instance", message)];
        lines.extend(siblings);
        let cause = first(&lines, None).unwrap();
        let found = cause.params.iter().next().map(|(name, value)| (name.as_str(), value.as_str()));
        assert_eq!((cause.code, found), (Code::WaitsFor, awaited), "{message}");
    }
}

#[test]
fn waiting_headline_is_readable() {
    let headline = |params| Cause::new(Code::WaitsFor, [params]).headline();
    assert_eq!(headline(("slot", "security-group")), "Waiting for the security group");
    assert_eq!(headline(("slot", "ssh-203.0.113.0/24")), "Waiting for the ssh-203.0.113.0/24");
    assert_eq!(headline(("for", "its password")), "Waiting for its password");
}

#[test]
fn missing_secret_is_named() {
    let cause =
        first(&[waiting("own", "User", "cannot get credentials: Secret \"a\" not found")], None);
    assert_eq!(cause, Some(Cause::new(Code::WaitsForSecret, [("secret", "a")])));
}

#[test]
fn provider_config_of_the_environment_is_waited_for() {
    let message =
        "cannot get ProviderConfig: ProviderConfig.helm.crossplane.io \"x-helm\" not found";
    let config = Line { name: Some("x-helm"), ..sibling("helm-config", "ProviderConfig") };
    let cause = first(&[waiting("app", "Release", message), config], None);
    assert_eq!(cause, Some(Cause::new(Code::WaitsFor, [("slot", "helm-config")])));
    let cause = first(&[waiting("app", "Release", message)], None).unwrap();
    assert_eq!(cause.code, Code::ProviderConfigMissing);
}

#[test]
fn reasons_lead_to_codes() {
    let line = |reason, message| Line { reason: Some(reason), ..failed("Role", message) };
    let code = |line| first(&[line], None).map(|cause| cause.code);
    assert_eq!(code(line("Paused", "is paused")), Some(Code::Paused));
    assert_eq!(code(line("NotAccepted", "the API server has not")), Some(Code::NotAccepted));
    assert_eq!(code(line("Creating", "is being created")), None);
    assert_eq!(
        code(line(
            "Creating",
            "1 of 2 replicas are available: pods \"a\" is forbidden: exceeded quota: gpus"
        )),
        Some(Code::QuotaExceeded)
    );
    assert_eq!(code(line("Deleting", "is being deleted")), None);
    assert_eq!(code(Line { reason: None, ..failed("Role", "quota") }), None);
}

#[test]
fn unresolved_references_wait_and_refusals_do_not() {
    for (message, is_waiting) in [
        ("cannot resolve references: mg.Spec.ForProvider.Role: referenced field was empty", true),
        ("cannot get credentials: Secret \"a\" not found", true),
        ("cannot get connection secret", true),
        ("dial tcp: connect: connection refused", false),
        ("create failed: AccessDenied", false),
        ("InvalidAMIID.NotFound", false),
    ] {
        assert_eq!(is_not_there_yet(message), is_waiting, "{message}");
    }
}

#[test]
fn code_of_a_later_release_is_unknown() {
    let cause: Cause =
        serde_json::from_str(r#"{"code": "OverBudget", "params": {"a": "b"}}"#).unwrap();
    assert_eq!((cause.code, cause.param("a")), (Code::Unknown, Some("b")));
    let cause = Cause::new(Code::QuotaExceeded, []);
    assert_eq!(serde_json::to_string(&cause).unwrap(), r#"{"code":"QuotaExceeded"}"#);
}

/// A row of the corpus.
struct Sample<'c> {
    effect: &'c str,
    when: &'c str,
    code: &'c str,
    source: &'c str,
    message: &'c str,
}

fn corpus() -> Vec<Sample<'static>> {
    let rows = include_str!("corpus.tsv").lines().filter(|line| !line.starts_with('#'));
    let sample = |row: &'static str| match row.split('\t').collect::<Vec<_>>()[..] {
        [effect, when, code, source, message] => Sample { effect, when, code, source, message },
        _ => panic!("not five columns: {row}"),
    };
    rows.map(sample).collect()
}

#[test]
fn corpus_messages_have_their_effect_and_cause() {
    let mut wrong = Vec::new();
    for Sample { effect, when, code, message, .. } in corpus() {
        let found = find(message, None);
        let waits = match found.effect {
            Effect::Waits => true,
            Effect::WaitsForSiblings | Effect::WaitsForHost => when == "sibling",
            Effect::Fails => false,
        };
        let is_for_another = waits && found.effect != Effect::Waits;
        let own = if is_for_another { Code::WaitsFor } else { found.cause.code };
        let actual = (if waits { "waits" } else { "fails" }, own.to_string());
        if actual != (effect, code.to_owned()) {
            wrong.push(format!(
                "wanted {effect} {code}, found {} {}: {message}",
                actual.0, actual.1
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn corpus_is_broad_and_names_its_sources() {
    let rows = corpus();
    assert!(rows.len() >= 120, "{}", rows.len());
    let mut by_shape: BTreeMap<String, usize> = BTreeMap::new();
    for Sample { source, message, .. } in &rows {
        assert!(source.contains('#') || source.contains(" v"), "{source}");
        // An error code is the shape of a message, and the words around it are not.
        let core = message.rsplit_once("api error ").map_or(*message, |(_, core)| core);
        let core = core.rsplit_once(" failed: ").map_or(core, |(_, core)| core);
        let core = core.trim_start_matches("failed to install release: ");
        let core = core.trim_start_matches("failed to pull chart: ");
        let shape: String = core.split_whitespace().take(5).collect();
        *by_shape.entry(shape).or_default() += 1;
    }
    let most = by_shape.into_iter().max_by_key(|(_, count)| *count).unwrap();
    assert!(most.1 <= 8, "{most:?}");
    let reports = rows.iter().filter(|row| row.source.contains('#')).count();
    assert!(reports >= 120, "only {reports} rows are from public reports");
}

#[test]
fn each_code_has_words() {
    let codes: std::collections::BTreeSet<&str> = corpus().iter().map(|row| row.code).collect();
    for row in corpus() {
        let cause = find(row.message, None).cause;
        assert!(!cause.headline().is_empty() && cause.remediation().ends_with('.'), "{cause:?}");
    }
    for code in ["Unreachable", "ServiceNotEnabled", "ChartNotFound", "DatabaseAdministrator"] {
        assert!(codes.contains(code), "{code}");
    }
}

#[test]
fn remedies_follow_the_message() {
    for (message, headline, remedy) in [
        (
            "operation error CloudFront: CreateDistribution, AccessDenied: Your account must be \
             verified before you can add new CloudFront resources.",
            "AWS CloudFront has not verified the account, or blocks it",
            "have the account verified",
        ),
        (
            "googleapi: Error 400: Invalid request: Organization Policy check failure: the external \
             IP of this instance violates the constraints/sql.restrictPublicIp",
            "A policy of Google Cloud forbids this",
            "change the Settings",
        ),
        (
            "chart \"podinfo\" version \"9.9.9\" not found in https://example.org repository",
            "The repository has no chart podinfo in version 9.9.9",
            "Check the repository",
        ),
        (
            "InvalidInput: Duplicate tag keys found.",
            "The cloud rejects settings.tags",
            "correct the value",
        ),
        (
            "dial tcp: lookup sts.us-est-1.amazonaws.com on 10.96.0.10:53: no such host",
            "sts.us-est-1.amazonaws.com cannot be reached",
            "Check the spelling",
        ),
    ] {
        let cause = find(message, None).cause;
        assert_eq!(cause.headline(), headline);
        assert!(cause.remediation().contains(remedy), "{}", cause.remediation());
    }
}

#[test]
fn missing_objects_of_settings_name_their_key() {
    for (message, api, key) in [
        (
            "NoSuchEntity: Scope ARN: arn:aws:iam::1:policy/a does not exist or is not attachable.",
            "gpu-workspace",
            "gpuWorkspace.permissionsBoundary",
        ),
        (
            "googleapi: Error 404: Not found: projects/acme-dve., notFound",
            "application-environment",
            "applicationEnvironment.projectId",
        ),
        (
            "The resource 'projects/a/regions/b/subnetworks/c' was not found",
            "virtual-environment",
            "environment.gke.subnetwork",
        ),
        (
            "Code=\"ResourceGroupNotFound\" Message=\"Resource group 'a' could not be found.\"",
            "virtual-environment",
            "environment.aks.resourceGroupName",
        ),
    ] {
        let found = find(message, Some(api));
        assert_eq!((found.cause.code, found.effect), (Code::SettingsReference, Effect::Fails));
        assert_eq!(found.cause.param("settings"), Some(key), "{message}");
    }
}
