//! Stock pools.

use super::*;

fn pool() -> World {
    main_examples("stock-pool").into_iter().find(|world| world.flavour == Flavour::Claims).unwrap()
}

fn with(field: &str, value: Value) -> World {
    let mut world = pool();
    world.xr["spec"][field] = value;
    world
}

fn without(field: &str) -> World {
    let mut world = pool();
    world.xr["spec"].as_object_mut().unwrap().remove(field);
    world
}

#[test]
fn fields_of_a_pool() {
    const IMAGE: &str = r#"spec.image: found "Acme/App:1"; allowed: an image with a lowercase repository, for example registry.example.org/team/app:1.2"#;
    let case = |world, message| Case { world, reason: SPEC, message };
    check(vec![
        case(without("specName"), "spec.specName: missing; a value is required"),
        case(
            with("specName", json!("g 1")),
            r#"spec.specName: found "g 1"; allowed: 1 to 63 letters, digits and . _ -, starting and ending with a letter or digit"#,
        ),
        case(with("image", json!("Acme/App:1")), IMAGE),
        case(
            with("memory", json!("16 gigs")),
            r#"spec.memory: found "16 gigs"; allowed: an amount of memory from 4Mi to less than 8Ei, for example 16Gi"#,
        ),
        case(
            with("memory", json!("0Gi")),
            r#"spec.memory: found "0Gi"; allowed: an amount of memory from 4Mi to less than 8Ei, for example 512Mi or 16Gi"#,
        ),
        case(
            with("memory", json!("8Ei")),
            r#"spec.memory: found "8Ei"; allowed: an amount of memory from 4Mi to less than 8Ei, for example 512Mi or 16Gi"#,
        ),
        case(
            with("memory", json!("16")),
            r#"spec.memory: found "16", 16 bytes; allowed: an amount of memory from 4Mi to less than 8Ei, for example 16Gi"#,
        ),
        case(with("memory", json!(16)), "spec.memory: found 16; allowed: a text, in quotes"),
        case(with("gpu", json!(-1)), "spec.gpu: found -1; allowed: 0 to 16 GPUs"),
        case(with("gpu", json!(17)), "spec.gpu: found 17; allowed: 0 to 16 GPUs"),
        case(with("gpu", json!("one")), r#"spec.gpu: found "one"; allowed: a whole number"#),
        case(without("replicas"), "spec.replicas: missing; a value is required"),
        case(with("replicas", json!(-2)), "spec.replicas: found -2; allowed: 0 to 2147483647 pods"),
        case(with("replicas", json!(1.5)), "spec.replicas: found 1.5; allowed: a whole number"),
        case(
            with("replica", json!(1)),
            "spec.replica: unknown field; allowed: specName, image, memory, gpu, replicas \
             (nearest: replicas)",
        ),
        case(
            without("claimRef"),
            "spec.claimRef: missing; allowed: a claim, because a stock pool is in the namespace \
             of the claim",
        ),
    ]);
}

#[test]
fn settings_of_pools() {
    check(vec![
        Case {
            world: settings(pool(), "stockPool", "runtimeClassName", json!("NVIDIA")),
            reason: SETTINGS,
            message: r#"settings.stockPool.runtimeClassName: found "NVIDIA"; allowed: 1 to 63 lowercase letters, digits and hyphens, starting and ending with a letter or digit"#,
        },
        Case {
            world: settings(pool(), "stockPool", "runtimeClass", json!("nvidia")),
            reason: SETTINGS,
            message: "settings.stockPool.runtimeClass: unknown field; allowed: runtimeClassName",
        },
    ]);
}
