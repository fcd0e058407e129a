//! Documents that are valid, but deserve a note.

use crate::support::{example, folder, paved, paved_with, within};

#[test]
fn claim_is_checked_without_settings_with_a_note() {
    let claim = std::fs::read_to_string(example("gpu-workspace/claim.yaml")).unwrap();
    let elsewhere = claim.replace("    owner:", "    region: eu-west-1\n    owner:");
    let run = paved_with(&["validate", "-"], &elsewhere);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.err.starts_with("note: no Settings found, so paved skipped the checks that need them"),
        "{}",
        run.err
    );
    let run = paved_with(
        &["validate", "-", "--composition", &example("gpu-workspace/composition.yaml")],
        &elsewhere,
    );
    assert_eq!(run.code, 3, "{}", run.err);
    assert!(
        run.err.contains("spec.parameters.region: found \"eu-west-1\"; allowed: us-east-1\n"),
        "{}",
        run.err
    );
}

#[test]
fn unknown_group_is_noted_as_unchecked() {
    let own = |path: &str| {
        std::fs::read_to_string(example(path))
            .unwrap()
            .replace("platform.acme.io", "dev.example.org")
    };
    let claim = own("stock-pool/claim.yaml");
    let words = "the group dev.example.org is not platform.acme.io or platform.m.acme.io, so \
                 paved skipped the checks of StockPool";
    let files = folder(&[("a.yaml", &format!("{claim}---\n{claim}"))]);
    for form in ["text", "json", "github"] {
        let run = paved(&["validate", &within(&files, "a.yaml"), "-o", form]);
        assert_eq!((run.code, run.told().matches(words).count()), (0, 1), "{form}: {}", run.told());
    }
    let files =
        folder(&[("a.yaml", &claim), ("composition.yaml", &own("stock-pool/composition.yaml"))]);
    let (claim, composition) = (within(&files, "a.yaml"), within(&files, "composition.yaml"));
    for args in [&["validate", &claim][..], &["validate", &claim, "--composition", &composition]] {
        let run = paved(args);
        assert!(run.code == 0 && !run.told().contains("skipped the checks"), "{}", run.told());
    }
    assert!(
        !paved(&["validate", &example("stock-pool/claim.yaml")])
            .told()
            .contains("is not platform.acme.io")
    );
}

#[test]
fn composites_of_a_custom_group_may_have_the_names_of_claims() {
    let own = |path: &str| {
        std::fs::read_to_string(example(path))
            .unwrap()
            .replace("platform.m.acme.io", "dev.example.org")
    };
    let bare = own("stock-pool/namespaced/xr.yaml");
    let with = |field: &str| bare.replace("  replicas:", &format!("  {field}\n  replicas:"));
    let kept = with("crossplane: {compositionRef: {name: pools}}");
    let asked = with("compositionRef: {name: pools}");
    let composition = own("stock-pool/namespaced/composition.yaml");
    let files = folder(&[("kept.yaml", &kept), ("bare.yaml", &bare), ("asked.yaml", &asked)]);
    let run = |name: &str, more: &[&str]| {
        paved(&[&["validate", &within(&files, name)][..], more].concat())
    };
    for (name, code) in [("kept.yaml", 0), ("bare.yaml", 0), ("asked.yaml", 0)] {
        assert_eq!(
            run(name, &[]).code,
            code,
            "without a Composition: {name} {}",
            run(name, &[]).told()
        );
    }
    std::fs::write(within(&files, "given"), &composition).unwrap();
    let given = within(&files, "given");
    let by_hand = run("bare.yaml", &["--composition", &given]);
    std::fs::write(within(&files, "composition.yaml"), &composition).unwrap();
    for run in [by_hand, run("kept.yaml", &[]), run("bare.yaml", &[])] {
        assert!(run.code == 0 && !run.told().contains("skipped the checks"), "{}", run.told());
    }
    let refused = run("asked.yaml", &[]);
    assert_eq!(refused.code, 2, "{}", refused.told());
    assert!(refused.told().contains("spec.compositionRef: unknown field"), "{}", refused.told());
    let preview = paved(&["preview", &within(&files, "kept.yaml")]);
    assert_eq!(preview.code, 0, "{}", preview.told());
}

#[test]
fn foreign_document_is_skipped_and_no_own_document_is_an_error() {
    let foreign = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
    let files =
        folder(&[("web.yaml", foreign), ("values.yaml", "replicas: 1\n"), ("list.yaml", "- 1\n")]);
    let run = paved(&["validate", &files.path().display().to_string()]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(
        run.err.contains("has no claim, XR or Settings; allowed kinds: ApplicationEnvironment, "),
        "{}",
        run.err
    );
    assert!(
        run.err.contains("web.yaml: skipped, not a Paved Road kind: Deployment web"),
        "{}",
        run.err
    );
    let claim = std::fs::read_to_string(example("stock-pool/claim.yaml")).unwrap();
    let run = paved_with(&["validate", "-"], format!("{claim}---\n{foreign}"));
    assert_eq!(run.code, 0, "{}", run.err);
    for args in [&["validate"][..], &["validate", "/no/such/file"], &["validate", "-", "-o", "xml"]]
    {
        assert_eq!(paved(args).code, 1, "{args:?}");
    }
}

#[test]
fn mistyped_region_is_a_note_and_no_error() {
    let claim = "apiVersion: platform.acme.io/v1alpha1\n\
        kind: ApplicationEnvironment\n\
        metadata: {name: shop, namespace: team-shop}\n\
        spec: {parameters: {nodeSize: small, region: us-cetral1}}\n\
        ---\n\
        apiVersion: paved-road.fn.crossplane.io/v1beta1\n\
        kind: Settings\n\
        applicationEnvironment: {projectId: acme-dev}\n\
        unifiedEnvironment: {region: eu-wset-1}\n";
    let run = paved_with(&["validate", "-"], claim);
    assert_eq!(run.code, 0, "{}", run.told());
    for words in [
        "ApplicationEnvironment shop: spec.parameters.region: \"us-cetral1\" is not a known region \
         of Google Cloud. Did you mean us-central1?",
        "settings.unifiedEnvironment.region: \"eu-wset-1\" is not a known region of AWS. Did you \
         mean eu-west-",
    ] {
        assert!(run.err.contains(words), "{words}: {}", run.told());
    }
    let right = claim.replace("us-cetral1", "us-central1").replace("eu-wset-1", "eu-west-1");
    let run = paved_with(&["validate", "-"], &right);
    assert!(run.code == 0 && !run.err.contains("known region"), "{}", run.told());
}

/// An environment claim with a connection Secret.
fn claim_with_secret(name: &str, namespace: &str, secret: &str) -> String {
    format!(
        "apiVersion: platform.acme.io/v1alpha1\n\
         kind: EnvironmentClaim\n\
         metadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{database: {{size: small}}, frontend: {{appName: shop}}, \
         backend: {{image: \"registry.example.org/acme/shop:1\"}}, \
         writeConnectionSecretToRef: {{name: {secret}}}}}\n"
    )
}

#[test]
fn second_claim_with_a_connection_secret_is_rejected() {
    let one = claim_with_secret("shop-1", "team-shop", "shop-db");
    for (other, code) in [
        (claim_with_secret("shop-2", "team-shop", "shop-db"), 3),
        (claim_with_secret("shop-2", "team-shop", "shop-2-db"), 0),
        (claim_with_secret("shop-2", "team-art", "shop-db"), 0),
        // The same claim twice, for example in two overlays.
        (claim_with_secret("shop-1", "team-shop", "shop-db"), 0),
    ] {
        let both = folder(&[("one.yaml", one.as_str()), ("two.yaml", other.as_str())]);
        let files = [within(&both, "one.yaml"), within(&both, "two.yaml")];
        for args in [&["validate", &files[0], &files[1]][..], &["validate", &within(&both, "")]] {
            let run = paved(args);
            assert_eq!(run.code, code, "{other}: {}", run.told());
            let words = "spec.writeConnectionSecretToRef.name: found \"shop-db\", the connection \
                         Secret of EnvironmentClaim shop-1; allowed: a name that no other";
            assert_eq!(run.err.contains(words), code == 3, "{}", run.told());
        }
        let run = paved_with(&["validate", "-"], format!("{one}---\n{other}"));
        assert_eq!(run.code, code, "{other}: {}", run.told());
    }
}

#[test]
fn memory_without_a_unit_is_rejected_in_words() {
    let pool = |memory: &str| {
        format!(
            "apiVersion: platform.acme.io/v1alpha1\n\
             kind: StockPool\n\
             metadata: {{name: render, namespace: team-vision}}\n\
             spec: {{specName: g1, memory: {memory}, gpu: 1, replicas: 2}}\n"
        )
    };
    let range = "an amount of memory from 4Mi to less than 8Ei, for example";
    for (memory, words) in [
        ("16", "found 16; allowed: a string with a unit, for example \"16Gi\"".to_owned()),
        ("2048", "found 2048; allowed: a string with a unit, for example \"2048Mi\"".to_owned()),
        ("1e9", "allowed: a string with a unit, for example \"512Mi\" or \"16Gi\"".to_owned()),
        ("\"16\"", format!("found \"16\", 16 bytes; allowed: {range} 16Gi")),
        ("\"512\"", format!("found \"512\", 512 bytes; allowed: {range} 512Mi")),
        ("64Ki", format!("found \"64Ki\", 65536 bytes; allowed: {range} 512Mi or 16Gi")),
        ("16g", format!("found \"16g\"; allowed: {range} 16Gi")),
        ("16GB", format!("found \"16GB\"; allowed: {range} 16Gi")),
    ] {
        let run = paved_with(&["validate", "-"], pool(memory));
        assert!(run.code != 0 && run.err.contains(&words), "{memory}: {}", run.told());
        assert!(!run.err.contains("[KMGTPE]"), "{memory}: {}", run.told());
    }
}
