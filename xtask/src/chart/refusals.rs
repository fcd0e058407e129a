//! Values that the chart rejects.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::helm::Helm;

/// Invalid values, each with the field that the error names.
const BAD: [(&str, &str); 44] = [
    (r#"group="Platform.example.org""#, "/group"),
    (r#"group="platform""#, "/group"),
    (r#"apis="all""#, "/apis"),
    (r#"claimsGroup="a..b""#, "/claimsGroup"),
    (r#"kinds=["database"]"#, "/kinds/0"),
    (r"kinds=[]", "/kinds"),
    (r#"registry="https://ghcr.io/acme""#, "/registry"),
    (r#"registry="ghcr.io""#, "/registry"),
    (r#"release="latest""#, "/release"),
    (r#"crossplane.user="a'b""#, "/crossplane/user"),
    (r#"function.digest="sha256:1""#, "/function/digest"),
    (r"function.replicas=0", "/function/replicas"),
    (r#"configurations.names={"gpu": "x"}"#, "/configurations/names"),
    (r#"providers.except=["aws"]"#, "/providers/except/0"),
    (r#"providers.versions={"provider-helm": "1.0"}"#, "/providers/versions/provider-helm"),
    (r#"settings.gpuWorkspace.amis="none""#, "/settings/gpuWorkspace/amis"),
    (r#"portal.publicUrl="http://portal.example.org""#, "/portal/publicUrl"),
    (r#"portal.publicUrl="https://portal.example.org/below""#, "/portal/publicUrl"),
    (r#"portal.oidc.issuer="http://id.example.org""#, "/portal/oidc/issuer"),
    (r#"portal.oidc.clientId="""#, "/portal/oidc/clientId"),
    (r#"portal.oidc.clientSecret.value="x""#, "/portal/oidc/clientSecret"),
    (r#"portal.oidc.scopes=["a b"]"#, "/portal/oidc/scopes/0"),
    (r#"portal.sessions.secretName="""#, "/portal/sessions/secretName"),
    (r"portal.sessions.keys=[]", "/portal/sessions/keys"),
    (r#"portal.sessions.keys=["a/b"]"#, "/portal/sessions/keys/0"),
    (r#"portal.sessions.ttl="soon""#, "/portal/sessions/ttl"),
    (r#"portal.impersonation.users=["system:admin"]"#, "/portal/impersonation/users/0"),
    (r#"portal.impersonation.groups=["system:masters"]"#, "/portal/impersonation/groups/0"),
    (r#"portal.impersonation.anyUser="yes""#, "/portal/impersonation/anyUser"),
    (r#"portal.namespaceTemplate="Team-{team}""#, "/portal/namespaceTemplate"),
    (r#"portal.trustedProxies=["somewhere"]"#, "/portal/trustedProxies/0"),
    (r#"logLevel="loud""#, "/logLevel"),
    (r#"listenAddress="127.0.0.1""#, "/listenAddress"),
    (r#"otherGroups.claims=["*"]"#, "/otherGroups/claims/0"),
    (r"portal.serviceAccount.create=false", "/portal/serviceAccount/name"),
    (r#"image.digest="sha256:abc""#, "/image/digest"),
    (r#"image.pullPolicy="Sometimes""#, "/image/pullPolicy"),
    (r"portal.replicas=0", "/portal/replicas"),
    (r"portal.podDisruptionBudget.maxUnavailable=0", "/portal/podDisruptionBudget/maxUnavailable"),
    (r"portal.service.port=70000", "/portal/service/port"),
    (r#"portal.service.type="ExternalName""#, "/portal/service/type"),
    (
        r#"portal.networkPolicy.ingress.from=[{"cidr": "10.0.0.0/8"}]"#,
        "/portal/networkPolicy/ingress/from/0",
    ),
    (r#"portal.serviceMonitor.interval="often""#, "/portal/serviceMonitor/interval"),
    (r#"portal.fullnameOverride="Portal""#, "/portal/fullnameOverride"),
];

/// Required values.
const NEEDED: [&str; 4] = [
    "/portal/publicUrl",
    "/portal/oidc/issuer",
    "/portal/oidc/clientId",
    "/portal/sessions/secretName",
];

/// Values that contradict each other, each with the beginning and the end of the error.
const CONTRADICTIONS: [(&[&str], &str, &str); 6] = [
    (
        &[r#"group="""#],
        "group: found none; allowed: the API group of your company",
        "--set group=…",
    ),
    (&[r#"apis="both""#], "claimsGroup: found none", "cannot share a group"),
    (
        &[r#"apis="both""#, r#"claimsGroup="platform.example.org""#],
        "claimsGroup: found platform.example.org, which is also group",
        "cannot share one",
    ),
    (&[r#"claimsGroup="a.example.org""#], "claimsGroup: found a.example.org", "set apis to both"),
    (&[r#"group="platform.acme.io""#], "group: found platform.acme.io", "platform.example.org"),
    (
        &["configurations.enabled=true"],
        "configurations.enabled: found true with the group platform.example.org",
        "itself installs the APIs",
    ),
];

/// Returns the number of rejected values.
pub fn check(helm: &Helm, values: &Path) -> Result<usize> {
    for (set, field) in BAD {
        let told = helm.refusal(Some(values), &[set])?;
        named(&told, field).with_context(|| set.to_owned())?;
    }
    for (set, begin, end) in CONTRADICTIONS {
        let told = helm.refusal(Some(values), set)?;
        says(&told, begin).and_then(|()| says(&told, end)).with_context(|| set.join(" "))?;
    }
    let told = helm.refusal(None, &[]).context("without values")?;
    says(&told, CONTRADICTIONS[0].1).context("without values")?;
    let told = helm.refusal(None, &["group=null"]).context("without a group")?;
    says(&told, "missing property 'group'").context("without a group")?;
    let portal = [r#"group="platform.example.org""#, "portal.enabled=true"];
    let told = helm.refusal(None, &portal).context("a portal without values")?;
    for field in NEEDED {
        named(&told, field).context("a portal without values")?;
    }
    for (set, field, unknown) in [
        ("portal.oidc.isuer=\"https://id.example.org\"", "/portal/oidc", "'isuer'"),
        ("gruop=\"platform.example.org\"", "", "'gruop'"),
        ("settings.gpuWorkspaces={}", "/settings", "'gpuWorkspaces'"),
    ] {
        let told = helm.refusal(Some(values), &[set])?;
        named(&told, field).and_then(|()| says(&told, unknown)).context("an unknown field")?;
    }
    Ok(BAD.len() + CONTRADICTIONS.len() + NEEDED.len() + 5)
}

fn named(told: &str, field: &str) -> Result<()> {
    says(told, &format!("at '{field}'"))
}

fn says(told: &str, part: &str) -> Result<()> {
    ensure!(told.contains(part), "the error lacks {part}: {}", told.trim());
    Ok(())
}
