//! The time to compose every example, as claims API and as namespaced API, in every state. For the
//! largest answers, also the time to encode.
//!
//! `cargo bench` runs all benchmarks; `cargo bench -- gpu-workspace` runs some.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use function_paved_road::{value, wire};
use function_proto::v1::RunFunctionRequest;
use prost::Message as _;
use serde_json::{Value, json};

use support::{answer, examples, request};

/// The function itself: from a decoded request to a response. Each request is copied right before
/// its call, as a server decodes it. A batch of hundreds of copies would be cold in the cache,
/// unlike on a server.
fn compose(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compose");
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    for example in examples() {
        let request = example.request();
        group.bench_function(example.name(), |bencher| {
            bencher.iter_batched(
                || request.clone(),
                |request| black_box(answer(request)),
                BatchSize::PerIteration,
            );
        });
    }
}

/// The growth of the time with the environment: a GPU workspace with this many composed resources,
/// one for each open CIDR.
fn sizes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sizes");
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    for size in [10, 30, 100] {
        let request = workspace(size);
        let composed = answer(request.clone()).desired.unwrap().resources.len();
        assert_eq!(composed, size);
        group.bench_function(size.to_string(), |bencher| {
            bencher.iter_batched(
                || request.clone(),
                |request| black_box(answer(request)),
                BatchSize::PerIteration,
            );
        });
    }
}

/// The example's ready workspace, with its SSH rule repeated.
fn workspace(size: usize) -> RunFunctionRequest {
    const CIDR: &str = "203.0.113.0/24";
    let name = "gpu-workspace__claims__ready";
    let example = examples().into_iter().find(|example| example.name() == name).unwrap();
    let of_rule = |document: &Value| document.to_string().contains(CIDR);
    let (rules, mut observed): (Vec<_>, Vec<_>) = example.observed().into_iter().partition(of_rule);
    let fixed = answer(example.request()).desired.unwrap().resources.len() - 1;
    let cidrs: Vec<_> = (1..=size - fixed).map(|n| format!("10.0.0.{n}/32")).collect();
    for cidr in &cidrs {
        observed.push(serde_json::from_str(&rules[0].to_string().replace(CIDR, cidr)).unwrap());
    }
    let mut xr = example.xr();
    xr["spec"]["parameters"]["allowedCidrs"] = json!(cidrs);
    let reference = |object: &Value| json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"]});
    xr["spec"]["resourceRefs"] = observed.iter().map(reference).collect();
    // A running composite has the status of the previous call.
    let before =
        answer(request(&xr, &observed, &example.input())).desired.unwrap().composite.unwrap();
    xr["status"] = Value::Object(value::object(before.resource.unwrap()))["status"].take();
    request(&xr, &observed, &example.input())
}

/// The steps before and after the function: decoding a request, and encoding a response with prost
/// and with our encoder.
fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    for example in examples().into_iter().filter(|example| example.state == "ready") {
        let request = example.request().encode_to_vec();
        group.bench_function(format!("{} decode", example.name()), |bencher| {
            bencher.iter_with_large_drop(|| {
                RunFunctionRequest::decode(black_box(request.as_slice())).unwrap()
            });
        });
        let response = answer(example.request());
        group.bench_function(format!("{} prost", example.name()), |bencher| {
            bencher.iter(|| black_box(&response).encode_to_vec());
        });
        group.bench_function(format!("{} sorted", example.name()), |bencher| {
            bencher.iter(|| wire::encode(black_box(&response)));
        });
    }
}

criterion_group!(benches, compose, sizes, encode);
criterion_main!(benches);
