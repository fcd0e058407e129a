#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::*;
use crate::apis;
use crate::models::{KINDS, Scope};
use crate::settings::Settings;

/// A managed resource of `service.provider`, in the claims API.
fn resource(group: &str, kind: &str, for_provider: &Value) -> Value {
    json!({"apiVersion": format!("{group}.upbound.io/v1beta2"), "kind": kind,
           "spec": {"forProvider": for_provider}})
}

fn workspace(machine: &str, region: &str, gib: u64) -> Value {
    let disk = json!({"volumeType": "gp3", "volumeSize": gib});
    let fields = json!({"region": region, "instanceType": machine, "rootBlockDevice": disk});
    resource("ec2.aws", "Instance", &fields)
}

fn gke(location: &str, cluster: Value, nodes: u64) -> Vec<Value> {
    let mut cluster = cluster;
    cluster["location"] = json!(location);
    let config = json!({"machineType": "e2-medium", "diskSizeGb": 50});
    let pool = json!({"location": location, "nodeCount": nodes, "nodeConfig": config});
    vec![
        resource("container.gcp", "Cluster", &cluster),
        resource("container.gcp", "NodePool", &pool),
    ]
}

fn eks(machines: &Value, support: &str) -> Vec<Value> {
    let policy = json!({"supportType": support});
    let group = json!({"region": "us-east-1", "instanceTypes": machines,
                       "scalingConfig": {"desiredSize": 2}});
    vec![
        resource("eks.aws", "Cluster", &json!({"region": "us-east-1", "upgradePolicy": policy})),
        resource("eks.aws", "NodeGroup", &group),
    ]
}

fn pods(name: &str, component: &str, size: Option<&str>, replicas: u64) -> Value {
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/component": component});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                            "metadata": {"labels": labels}, "spec": {"replicas": replicas}});
    let mut wrapper = json!({"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
                             "spec": {"forProvider": {"manifest": deployment}}});
    if let Some(size) = size {
        wrapper["metadata"] = json!({"annotations": {"paved-road.fn.crossplane.io/size": size}});
    }
    wrapper
}

fn objects(resources: &[Value]) -> impl Iterator<Item = &Object> {
    resources.iter().map(|resource| resource.as_object().unwrap())
}

fn pricing(discount: i64, overrides: &[(&str, Option<&str>, &str)]) -> Pricing {
    let own = |(name, region, usd): &(&str, Option<&str>, &str)| Override {
        name: (*name).to_owned(),
        region: region.map(str::to_owned),
        usd_per_hour: usd.parse().unwrap(),
    };
    Pricing { discount_percent: Some(discount), overrides: overrides.iter().map(own).collect() }
}

/// The prices of a running and of a stopped environment.
fn estimate(resources: &[Value], pricing: &Pricing) -> Result<(String, Option<String>), String> {
    match price(objects(resources), pricing, None, true) {
        Ok(price) => {
            Ok((price.hourly.to_string(), price.stopped_hourly.map(|usd| usd.to_string())))
        }
        Err(unpriced) => Err(unpriced.to_string()),
    }
}

fn usd(running: &str, stopped: Option<&str>) -> (String, Option<String>) {
    (running.to_owned(), stopped.map(str::to_owned))
}

fn list() -> Pricing {
    Pricing::default()
}

#[test]
fn workspace_costs_its_machine_address_and_disk() {
    // 0.526 + 0.005 + 100 × 0.08 / 730
    let workspace = [workspace("g4dn.xlarge", "us-east-1", 100)];
    assert_eq!(estimate(&workspace, &list()), Ok(usd("0.542", Some("0.011"))));
    let price = price(objects(&workspace), &list(), None, true).unwrap();
    assert_eq!(price.as_of, Some("2026-01-01".parse().unwrap()), "the oldest price");
}

#[test]
fn part_without_a_price_prevents_an_estimate() {
    let elsewhere = [workspace("g4dn.xlarge", "eu-west-1", 100)];
    let missing = "no price for ec2-volume-gp3 in eu-west-1, g4dn.xlarge in eu-west-1, \
                   public-ipv4-address in eu-west-1";
    assert_eq!(estimate(&elsewhere, &list()), Err(missing.to_owned()));
    let unknown = [workspace("g4dn.nano", "us-east-1", 100)];
    assert_eq!(estimate(&unknown, &list()), Err("no price for g4dn.nano in us-east-1".to_owned()));
    let mut unreadable = workspace("g4dn.xlarge", "us-east-1", 100);
    unreadable["spec"]["forProvider"]["rootBlockDevice"]["volumeSize"] = json!("100");
    let missing = "no price for Instance.ec2.aws.upbound.io";
    assert_eq!(estimate(&[unreadable], &list()), Err(missing.to_owned()));
    assert_eq!(estimate(&[], &list()), Err("no resource has a price".to_owned()));
}

#[test]
fn nodes_are_counted_in_every_zone() {
    let disk = [("gce-disk-pd-balanced", None, "0.0001")];
    let private = json!({"privateClusterConfig": {"enablePrivateNodes": true}});
    // 0.1 + zones × 2 × (0.03351 + 50 × 0.0001)
    for (location, zones, running) in [
        ("us-central1", json!([]), "0.332"),
        ("us-central1", json!(["us-central1-a", "us-central1-b"]), "0.255"),
        ("us-central1-a", json!([]), "0.178"),
        ("us-central1-a", json!(["us-central1-b"]), "0.255"),
    ] {
        let mut cluster = private.clone();
        cluster["nodeLocations"] = zones;
        let cluster = gke(location, cluster, 2);
        assert_eq!(estimate(&cluster, &pricing(0, &disk)), Ok(usd(running, Some("0.100"))));
    }
    let public = gke("us-central1", json!({}), 1);
    let missing = "no price for public-ipv4-address in us-central1";
    assert_eq!(estimate(&public, &pricing(0, &disk)), Err(missing.to_owned()));
    let pool = gke("us-central1", json!({}), 1).split_off(1);
    let missing = "no price for NodePool.container.gcp.upbound.io";
    assert_eq!(estimate(&pool, &pricing(0, &disk)), Err(missing.to_owned()));
}

#[test]
fn eks_cluster_has_one_machine_type_and_standard_support() {
    // 0.1 + 2 × (0.192 + 20 × 0.08 / 730)
    let cluster = eks(&json!(["m6i.xlarge"]), "STANDARD");
    assert_eq!(estimate(&cluster, &list()), Ok(usd("0.489", Some("0.100"))));
    let mut larger = cluster.clone();
    larger[1]["spec"]["forProvider"]["diskSize"] = json!(100);
    assert_eq!(estimate(&larger, &list()), Ok(usd("0.506", Some("0.100"))));
    let extended = eks(&json!(["m6i.xlarge"]), "EXTENDED");
    let missing = "no price for eks-cluster-extended-support in us-east-1";
    assert_eq!(estimate(&extended, &list()), Err(missing.to_owned()));
    let mixed = eks(&json!(["m6i.xlarge", "m6a.xlarge"]), "STANDARD");
    let missing = "no price for NodeGroup.eks.aws.upbound.io";
    assert_eq!(estimate(&mixed, &list()), Err(missing.to_owned()));
}

#[test]
fn stopped_database_servers_keep_their_disks_and_rds_its_machine() {
    let disks = [("cloud-sql-disk-pd-ssd", None, "0.0002"), ("rds-volume-gp3", None, "0.0002")];
    let settings =
        |kind: &str| json!({"tier": "db-g1-small", "diskSize": 10, "availabilityType": kind});
    let server = |kind| {
        let fields = json!({"region": "us-central1", "settings": settings(kind)});
        [resource("sql.gcp", "DatabaseInstance", &fields)]
    };
    let prices = pricing(0, &disks);
    assert_eq!(estimate(&server("ZONAL"), &prices), Ok(usd("0.037", Some("0.002"))));
    assert_eq!(estimate(&server("REGIONAL"), &prices), Ok(usd("0.074", Some("0.004"))));
    let fields = json!({"region": "us-east-1", "instanceClass": "db.t4g.micro",
                        "allocatedStorage": 20, "storageType": "gp3"});
    let rds = [resource("rds.aws", "Instance", &fields)];
    assert_eq!(estimate(&rds, &prices), Ok(usd("0.020", None)));
}

#[test]
fn pods_in_the_teams_cluster_have_only_the_price_of_settings() {
    let stock = [pods("stock-pool", "g4dn.xlarge", None, 2)];
    assert_eq!(estimate(&stock, &list()), Err("no price for g4dn.xlarge".to_owned()));
    let own = pricing(50, &[("g4dn.xlarge", None, "0.6")]);
    assert_eq!(estimate(&stock, &own), Ok(usd("1.200", Some("0.000"))), "without the discount");
    let regional = pricing(0, &[("g4dn.xlarge", Some("us-east-1"), "0.6")]);
    assert!(estimate(&stock, &regional).is_err(), "the team's cluster has no region");
    let backend = [pods("backend", "", Some("medium"), 3)];
    let own = pricing(0, &[("backend-medium", None, "0.02")]);
    assert_eq!(estimate(&backend, &own), Ok(usd("0.060", Some("0.000"))));
    assert_eq!(
        estimate(&[pods("web", "", None, 1)], &own),
        Err("no price for Deployment.apps".to_owned())
    );
}

#[test]
fn discount_applies_to_list_prices_and_not_to_overrides() {
    let workspace = [workspace("g4dn.xlarge", "us-east-1", 100)];
    // Half of 0.541959.
    assert_eq!(estimate(&workspace, &pricing(50, &[])), Ok(usd("0.271", Some("0.006"))));
    assert_eq!(estimate(&workspace, &pricing(100, &[])), Ok(usd("0.000", Some("0.000"))));
    let own = [("g4dn.xlarge", None, "0.9"), ("g4dn.xlarge", Some("us-east-1"), "0.4")];
    // 0.4 + half of 0.015959
    assert_eq!(estimate(&workspace, &pricing(50, &own)), Ok(usd("0.408", Some("0.006"))));
}

#[test]
fn earlier_price_stays_until_a_type_or_a_size_changes() {
    let before = [workspace("g4dn.xlarge", "us-east-1", 100)];
    let first = price(objects(&before), &list(), None, true).unwrap();
    let earlier = Price { hourly: "0.6".parse().unwrap(), as_of: None, ..first.clone() };
    let next = |resources: &[Value], pricing: &Pricing, runs| {
        price(objects(resources), pricing, Some(&earlier), runs)
    };
    assert_eq!(next(&before, &list(), true), Ok(earlier.clone()), "a release has other prices");
    let unrelated = pricing(0, &[("g5.xlarge", None, "0.1")]);
    assert_eq!(next(&before, &unrelated, true), Ok(earlier.clone()));
    let larger = [workspace("g4dn.xlarge", "us-east-1", 200)];
    assert_eq!(next(&larger, &list(), true).unwrap().hourly.to_string(), "0.553");
    assert_eq!(next(&larger, &list(), false), Ok(earlier.clone()), "it is to be stopped");
    let discounted = next(&before, &pricing(50, &[]), true).unwrap();
    assert_eq!(discounted.hourly.to_string(), "0.271", "Settings changed the price");
    assert!(next(&[workspace("g4dn.nano", "us-east-1", 100)], &list(), true).is_err());
    let fresh = price(objects(&before), &list(), None, false);
    assert_eq!(fresh, Err(Unpriced::default()), "what is asked for is not what runs");
}

#[test]
fn every_composed_kind_is_counted_or_free() {
    const COUNTED: [(&str, &str); 10] = [
        ("", "Object"),
        ("container", "Cluster"),
        ("container", "NodePool"),
        ("containerservice", "KubernetesCluster"),
        ("ec2", "Instance"),
        ("eks", "Cluster"),
        ("eks", "NodeGroup"),
        ("postgresql", "Role"),
        ("rds", "Instance"),
        ("sql", "DatabaseInstance"),
    ];
    for kind in KINDS.iter().map(|info| info.kind) {
        for scope in [Scope::LegacyCluster, Scope::Namespaced] {
            let empty = json!({"apiVersion": kind.api_version(scope), "kind": kind.kind,
                               "spec": {"forProvider": {}}});
            let is_counted = !parts::of(&[empty.as_object().unwrap()]).is_empty();
            assert_eq!(is_counted, COUNTED.contains(&(kind.service, kind.kind)), "{empty}");
        }
    }
}

#[test]
fn wrong_prices_in_settings_name_the_field() {
    let refused = |pricing: Value| {
        let Value::Object(body) = json!({"pricing": pricing}) else { unreachable!() };
        Settings::read(body, &apis::sections()).map(|_| ()).unwrap_err().to_string()
    };
    let own = |name: &str, region: Value, usd: Value| json!({"overrides": [{"type": name, "region": region, "usdPerHour": usd}]});
    for (wrong, message) in [
        (
            json!({"discountPercent": 101}),
            "settings.pricing.discountPercent: found 101; allowed: 0 to 100 percent",
        ),
        (
            json!({"discountPercent": "10"}),
            "settings.pricing.discountPercent: found \"10\"; allowed: a whole number",
        ),
        (
            own("g4dn.xlarge", json!("us-east-1"), json!(0.5)),
            "settings.pricing.overrides[0].usdPerHour: found 0.5; allowed: US dollars as a \
             decimal number in quotes, with at most nine digits before and after the point, for \
             example \"0.526\"",
        ),
        (
            own("g4dn xlarge", json!(null), json!("0.5")),
            "settings.pricing.overrides[0].type: found \"g4dn xlarge\"; allowed: a name of 1 to \
             63 letters, digits and . _ / -, for example g4dn.xlarge",
        ),
        (
            own("g4dn.xlarge", json!(""), json!("0.5")),
            "settings.pricing.overrides[0].region: found \"\"; allowed: a name of 1 to 63 \
             letters, digits and . _ / -, for example g4dn.xlarge",
        ),
        (
            json!({"overrides": [{"type": "a", "usdPerHour": "1"}, {"type": "a", "usdPerHour": "2"}]}),
            "settings.pricing.overrides[1].type: found \"a\"; allowed: one price for a type in a \
             region",
        ),
    ] {
        assert_eq!(refused(wrong), message);
    }
}

/// Resources that an environment could have, known types and unknown ones, sizes and nonsense.
fn resources() -> impl Strategy<Value = Vec<Value>> {
    let machine = select(vec!["g4dn.xlarge", "g5.48xlarge", "m6i.xlarge", "g4dn.nano", ""]);
    let region = select(vec!["us-east-1", "eu-west-1"]);
    let location = select(vec!["us-central1", "us-central1-a", "europe-west1", "-", ""]);
    let resource = prop_oneof![
        (machine.clone(), region, any::<u64>()).prop_map(|(machine, region, gib)| {
            vec![workspace(machine, region, gib >> (gib % 64))]
        }),
        (location, 0..200_u64).prop_map(|(location, nodes)| gke(location, json!({}), nodes)),
        machine.prop_map(|machine| eks(&json!([machine]), "STANDARD")),
        ("[a-c]", any::<u64>())
            .prop_map(|(name, count)| { vec![pods("stock-pool", &name, None, count)] }),
        anything().prop_map(|fields| vec![resource("ec2.aws", "Instance", &fields)]),
        (select(KINDS), anything()).prop_map(|(info, fields)| {
            vec![json!({"apiVersion": info.kind.api_version(Scope::Namespaced),
                        "kind": info.kind.kind, "spec": {"forProvider": fields}})]
        }),
    ];
    vec(resource, 0..4).prop_map(|lists| lists.concat())
}

/// Values with the names of fields that are read, of any type.
fn anything() -> impl Strategy<Value = Value> {
    let names = "region|location|instanceType|rootBlockDevice|volumeSize|nodeCount|manifest|kind";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "us-east-1|gp3|[\\PC]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(names, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn own_prices() -> impl Strategy<Value = Pricing> {
    let names = select(vec!["a", "b", "gce-disk-pd-balanced", "public-ipv4-address", "e2-medium"]);
    let usd = "(0|[1-9][0-9]{0,8})(\\.[0-9]{1,9})?".prop_map(|text| text.parse().unwrap());
    let own = (names, usd).prop_map(|(name, usd_per_hour)| Override {
        name: name.to_owned(),
        region: None,
        usd_per_hour,
    });
    (0..=100_i64, vec(own, 0..6))
        .prop_map(|(discount, overrides)| Pricing { discount_percent: Some(discount), overrides })
}

proptest! {
    #[test]
    fn stopped_environment_never_costs_more(resources in resources(), pricing in own_prices()) {
        if let Ok(price) = price(objects(&resources), &pricing, None, true) {
            prop_assert!(price.stopped_hourly.is_none_or(|stopped| stopped <= price.hourly));
        }
    }

    #[test]
    fn larger_discount_never_costs_more(
        resources in resources(), pricing in own_prices(), discount in 0..=100_i64,
    ) {
        let other = Pricing { discount_percent: Some(discount), ..pricing.clone() };
        let [one, other] = [&pricing, &other]
            .map(|pricing| price(objects(&resources), pricing, None, true));
        let is_larger = Some(discount) >= pricing.discount_percent;
        match (one, other) {
            (Ok(one), Ok(other)) if is_larger => prop_assert!(other.hourly <= one.hourly),
            (Ok(one), Ok(other)) => prop_assert!(other.hourly >= one.hourly),
            (Err(one), Err(other)) => prop_assert_eq!(one, other),
            // A sum may be too large only without the discount.
            (Err(unpriced), Ok(_)) | (Ok(_), Err(unpriced)) => {
                prop_assert!(unpriced.types.is_empty());
            }
        }
    }

    /// One resource without a price makes the price unknown.
    #[test]
    fn unknown_type_prevents_an_estimate(
        mut resources in resources(), pricing in own_prices(), size in "[a-z]{1,8}", at: proptest::sample::Index,
    ) {
        let index = at.index(resources.len() + 1);
        resources.insert(index, workspace(&format!("g4dn.x{size}x"), "us-east-1", 100));
        prop_assert!(price(objects(&resources), &pricing, None, true).is_err());
        resources[index] = resource("ec2.aws", "Fleet", &json!({}));
        prop_assert!(price(objects(&resources), &pricing, None, true).is_err());
    }

    #[test]
    fn price_is_the_same_in_any_order_and_stays(resources in resources(), pricing in own_prices()) {
        let first = price(objects(&resources), &pricing, None, true);
        let mut reversed = resources.clone();
        reversed.reverse();
        prop_assert_eq!(&price(objects(&reversed), &pricing, None, true), &first);
        if let Ok(first) = first {
            let stored: Price = serde_json::from_value(json!(first)).unwrap();
            prop_assert_eq!(&stored, &first);
            for runs in [true, false] {
                let next = price(objects(&resources), &pricing, Some(&stored), runs);
                prop_assert_eq!(next.as_ref(), Ok(&first));
            }
        }
    }
}
