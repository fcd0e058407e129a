use serde_json::{Value, json};

use super::{Test, disk, legacy, namespaced, ready};
use crate::compose::Composer;
use crate::error::Error;
use crate::models::aws::{eks, rds};
use crate::models::{KINDS, gcp, helm, sql};
use crate::status::Answer;

/// The `onDeletion` of a composition, with the schema revision that added it.
fn told(test: Test, api: impl FnOnce(&mut Composer<'_>) -> Result<(), Error>) -> Value {
    let mut test = test;
    test.settings.schema_revision = Some(2);
    on_deletion(&test.compose(api).unwrap())
}

fn on_deletion(answer: &Answer) -> Value {
    answer.status["onDeletion"].clone()
}

#[test]
fn orphans_are_kept_and_other_resources_are_deleted() {
    for test in [legacy(), namespaced()] {
        let told = told(test, |cx| {
            cx.managed("bucket", gcp::Bucket::default())
                .external_name("files")
                .orphan(true)
                .add()?;
            cx.managed("disk", disk("here")).add()?;
            cx.managed("second", gcp::Bucket::default()).external_name("logs").add().map(|_| ())
        });
        let expected = json!({
            "deletes": [
                {"slot": "disk", "kind": "Disk", "hasData": false},
                {"slot": "second", "kind": "Bucket", "name": "logs", "hasData": true},
            ],
            "keeps": [{"slot": "bucket", "kind": "Bucket", "name": "files", "until": "deleted by hand"}],
        });
        assert_eq!(told, expected);
    }
}

#[test]
fn names_are_those_in_the_cloud_or_of_the_kubernetes_object() {
    let mut machine = ready();
    machine["metadata"]["annotations"]["crossplane.io/external-name"] = json!("i-0abc");
    let told = told(legacy().with("machine", machine), |cx| {
        cx.managed("machine", disk("here")).add()?;
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}});
        cx.object("service", service).add()
    });
    let expected = json!([
        {"slot": "machine", "kind": "Disk", "name": "i-0abc", "hasData": false},
        {"slot": "service", "kind": "Service", "name": "web", "hasData": false},
    ]);
    assert_eq!(told["deletes"], expected);
}

#[test]
fn helper_resources_are_in_neither_list() {
    for test in [legacy(), namespaced()] {
        let told = told(test, |cx| {
            cx.managed("a", disk("here")).add()?;
            cx.managed("b", disk("here")).add()?;
            cx.usage("a", "b")?;
            let config = json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "ProviderConfig", "metadata": {"name": "inner"}});
            cx.provider_config("config", config, true)?;
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb", "namespace": "else"}});
            cx.object("seen", service).observe().add()?;
            cx.managed("later", disk("here")).needs(false, "something").add().map(|_| ())
        });
        let slots: Vec<&Value> =
            told["deletes"].as_array().unwrap().iter().map(|one| &one["slot"]).collect();
        assert_eq!((slots, &told["keeps"]), (vec![&json!("a"), &json!("b")], &json!([])));
    }
}

#[test]
fn orphans_inside_a_cluster_of_the_environment_are_deleted_with_it() {
    for test in [legacy(), namespaced()] {
        let told = told(test, |cx| {
            let chart = helm::Chart { name: Some("vcluster".to_owned()), ..helm::Chart::default() };
            let cluster = helm::Release { chart: Some(chart), ..helm::Release::default() };
            cx.managed("vcluster", cluster).external_name("one").add()?;
            let config = json!({"apiVersion": "helm.crossplane.io/v1beta1", "kind": "ProviderConfig", "metadata": {"name": "inner"}});
            cx.provider_config("config", config, true)?;
            cx.managed("app", helm::Release::default())
                .provider_config("inner")
                .external_name("app")
                .orphan(true)
                .add()?;
            cx.managed("shared", helm::Release::default())
                .external_name("shared")
                .orphan(true)
                .add()
                .map(|_| ())
        });
        let expected = json!({
            "deletes": [
                {"slot": "app", "kind": "Release", "name": "app", "hasData": false},
                {"slot": "vcluster", "kind": "Release", "name": "one", "hasData": true},
            ],
            "keeps": [{"slot": "shared", "kind": "Release", "name": "shared", "until": "deleted by hand"}],
        });
        assert_eq!(told, expected);
    }
}

#[test]
fn a_grant_stays_exactly_as_long_as_its_database() {
    for (orphan, kept) in [(false, 0), (true, 2)] {
        let told = told(legacy(), |cx| {
            cx.managed("database", sql::Database::default())
                .external_name("shop")
                .orphan(orphan)
                .add()?;
            cx.managed("grant", sql::Grant::default()).orphan(true).add().map(|_| ())
        });
        assert_eq!(told["keeps"].as_array().unwrap().len(), kept, "{told}");
        assert_eq!(told["deletes"].as_array().unwrap().len(), 2 - kept, "{told}");
    }
}

#[test]
fn the_last_snapshot_of_a_server_is_kept() {
    let server = |skip| rds::Instance {
        skip_final_snapshot: Some(skip),
        final_snapshot_identifier: Some("shop-final".to_owned()),
        ..rds::Instance::default()
    };
    for (skip, kept) in [
        (
            false,
            json!([{"slot": "db", "kind": "Snapshot", "name": "shop-final", "until": "deleted by hand"}]),
        ),
        (true, json!([])),
    ] {
        let told = told(legacy(), |cx| {
            cx.managed("db", server(skip)).external_name("shop").add().map(|_| ())
        });
        assert_eq!(told["keeps"], kept);
        assert_eq!(
            told["deletes"][0],
            json!({"slot": "db", "kind": "Instance", "name": "shop", "hasData": true})
        );
    }
}

#[test]
fn the_logs_of_an_eks_cluster_are_kept() {
    let cluster = eks::Cluster {
        enabled_cluster_log_types: vec!["audit".to_owned()],
        ..eks::Cluster::default()
    };
    let told = told(namespaced(), |cx| {
        cx.managed("cluster", cluster).external_name("one").add().map(|_| ())
    });
    let logs = json!({"slot": "cluster", "kind": "LogGroup", "name": "/aws/eks/one/cluster", "until": "deleted by hand"});
    assert_eq!(told["keeps"], json!([logs]));
}

#[test]
fn soft_deleted_objects_are_kept_as_long_as_the_bucket_policy() {
    let bucket = |status: Value| {
        json!({
            "apiVersion": "storage.gcp.upbound.io/v1beta2", "kind": "Bucket",
            "metadata": {"annotations": {"crossplane.io/external-name": "files"}},
            "spec": {"forProvider": {"location": "here"}}, "status": status,
        })
    };
    let policy = |seconds: i64| json!({"atProvider": {"softDeletePolicy": {"retentionDurationSeconds": seconds}}});
    let kept = json!([{
        "slot": "bucket", "kind": "SoftDeletedObjects", "name": "files", "until": "7 days after the deletion",
    }]);
    for (status, kept) in [(policy(604_800), kept), (policy(0), json!([])), (json!({}), json!([]))]
    {
        let told = told(legacy().with("bucket", bucket(status)), |cx| {
            cx.managed("bucket", gcp::Bucket::default()).external_name("files").add().map(|_| ())
        });
        assert_eq!(told["keeps"], kept);
    }
}

/// A new kind that sounds like data needs a decision whether it has user data.
#[test]
fn kinds_that_sound_like_data_are_decided() {
    const WITHOUT: [&str; 8] = [
        "BucketIAMMember",
        "BucketOwnershipControls",
        "BucketPolicy",
        "BucketPublicAccessBlock",
        "BucketServerSideEncryptionConfiguration",
        "ClusterAuth",
        "InstanceProfile",
        "InstanceState",
    ];
    const SOUNDS: [&str; 7] =
        ["Bucket", "Cluster", "Database", "FileSystem", "Instance", "Snapshot", "Volume"];
    for info in KINDS {
        let object = json!({"apiVersion": info.kind.api_version(crate::models::Scope::Namespaced), "kind": info.kind.kind});
        let Value::Object(object) = object else { unreachable!() };
        let sounds = SOUNDS.iter().any(|word| info.kind.kind.contains(word));
        let expected = sounds && !WITHOUT.contains(&info.kind.kind);
        assert_eq!(
            crate::status::has_data(&object),
            expected,
            "{}: add it to WITH_DATA, or to this test's WITHOUT",
            info.kind.kind
        );
    }
}
