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
        run.err.contains(
            "settings.gpuWorkspace.amis.eu-west-1: region eu-west-1 has no machine \
             image"
        ),
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
