//! Values that the chart rejects.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::helm::Helm;

/// Invalid values, each with the field that the error names.
const BAD: [(&str, &str); 28] = [
    (r#"publicUrl="http://portal.example.org""#, "/publicUrl"),
    (r#"publicUrl="https://portal.example.org/below""#, "/publicUrl"),
    (r#"oidc.issuer="http://id.example.org""#, "/oidc/issuer"),
    (r#"oidc.clientId="""#, "/oidc/clientId"),
    (r#"oidc.clientSecret.value="x""#, "/oidc/clientSecret"),
    (r#"oidc.scopes=["a b"]"#, "/oidc/scopes/0"),
    (r#"sessions.secretName="""#, "/sessions/secretName"),
    (r"sessions.keys=[]", "/sessions/keys"),
    (r#"sessions.keys=["a/b"]"#, "/sessions/keys/0"),
    (r#"sessions.ttl="soon""#, "/sessions/ttl"),
    (r#"impersonation.users=["system:admin"]"#, "/impersonation/users/0"),
    (r#"impersonation.groups=["system:masters"]"#, "/impersonation/groups/0"),
    (r#"impersonation.anyUser="yes""#, "/impersonation/anyUser"),
    (r#"namespaceTemplate="Team-{team}""#, "/namespaceTemplate"),
    (r#"trustedProxies=["somewhere"]"#, "/trustedProxies/0"),
    (r#"logLevel="loud""#, "/logLevel"),
    (r#"listenAddress="127.0.0.1""#, "/listenAddress"),
    (r#"apiGroups.claims=["*"]"#, "/apiGroups/claims/0"),
    (r"serviceAccount.create=false", "/serviceAccount/name"),
    (r#"image.digest="sha256:abc""#, "/image/digest"),
    (r#"image.pullPolicy="Sometimes""#, "/image/pullPolicy"),
    (r"replicas=0", "/replicas"),
    (r"podDisruptionBudget.maxUnavailable=0", "/podDisruptionBudget/maxUnavailable"),
    (r"service.port=70000", "/service/port"),
    (r#"service.type="ExternalName""#, "/service/type"),
    (r#"networkPolicy.ingress.from=[{"cidr": "10.0.0.0/8"}]"#, "/networkPolicy/ingress/from/0"),
    (r#"serviceMonitor.interval="often""#, "/serviceMonitor/interval"),
    (r#"fullnameOverride="Portal""#, "/fullnameOverride"),
];

/// Required values.
const NEEDED: [&str; 4] = ["/publicUrl", "/oidc/issuer", "/oidc/clientId", "/sessions/secretName"];

/// Returns the number of rejected values.
pub fn check(helm: &Helm, values: &Path) -> Result<usize> {
    for (set, field) in BAD {
        let told = helm.refusal(Some(values), &[set])?;
        named(&told, field).with_context(|| set.to_owned())?;
    }
    let told = helm.refusal(None, &[]).context("without values")?;
    for field in NEEDED {
        named(&told, field).context("without values")?;
    }
    let told = helm.refusal(Some(values), &["oidc.isuer=\"https://id.example.org\""])?;
    named(&told, "/oidc").and_then(|()| says(&told, "'isuer'")).context("an unknown field")?;
    Ok(BAD.len() + NEEDED.len() + 1)
}

fn named(told: &str, field: &str) -> Result<()> {
    says(told, &format!("at '{field}'"))
}

fn says(told: &str, part: &str) -> Result<()> {
    ensure!(told.contains(part), "the error lacks {part}: {}", told.trim());
    Ok(())
}
