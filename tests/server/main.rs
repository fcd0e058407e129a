//! The server over real gRPC: authentication, rejected requests, memory, shutdown and metrics.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod certificates;
mod process;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use clap::Parser as _;
use function_paved_road::server::{Flags, Function, Server};
use function_paved_road::value;
use function_proto::v1::{Resource, RunFunctionRequest, RunFunctionResponse, State};
use function_sdk_rust::proto::v1::function_runner_service_client::FunctionRunnerServiceClient;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::codegen::tokio_stream;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use calls::{begin, framed, request_of, scrape, send};
use certificates::Authority;
use process::Process;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn client_without_a_certificate_of_the_authority_is_rejected() {
    let authority = Authority::new();
    let directory = authority.server_directory();
    let (counting, answered) = counting();
    let address = serve(counting, &["--tls-certs-dir", directory.path().to_str().unwrap()]).await;

    let answer = call(&address, Some(authority.trusting().identity(authority.client()))).await;
    assert_eq!(answer.unwrap().desired, request().desired);

    let stranger = Authority::new().client();
    let without = Some(authority.trusting());
    let of_a_stranger = Some(authority.trusting().identity(stranger));
    for refused in [without, of_a_stranger, None] {
        assert!(call(&address, refused).await.is_err());
    }
    assert_eq!(answered.load(SeqCst), 1, "the function gets no rejected call");
}

#[tokio::test]
async fn unusable_certificates_are_named_by_their_file() {
    let authority = Authority::new();
    for (file, text, expected) in [
        ("ca.crt", "", "ca.crt: it has no certificate"),
        ("tls.crt", "a text", "tls.crt: it has no certificate"),
        ("tls.key", "a text", "tls.key: no items found"),
        ("tls.key", &authority.other_key(), "the certificates in"),
    ] {
        let directory = authority.server_directory();
        std::fs::write(directory.path().join(file), text).unwrap();
        let folder = directory.path().to_str().unwrap();
        let flags = Flags::parse_from(["function", "--tls-certs-dir", folder]);
        let error = Server::bind(echo, vec![], &flags).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{file}: {error}");
    }
    let directory = authority.server_directory();
    std::fs::remove_file(directory.path().join("tls.key")).unwrap();
    let folder = directory.path().to_str().unwrap();
    let flags = Flags::parse_from(["function", "--tls-certs-dir", folder]);
    let error = Server::bind(echo, vec![], &flags).await.err().unwrap().to_string();
    assert!(error.contains("tls.key: No such file"), "{error}");
}

#[tokio::test]
async fn server_without_certificates_does_not_start() {
    let flags = Flags::parse_from(["function"]);
    assert!(
        Server::bind(echo, vec![], &flags)
            .await
            .err()
            .unwrap()
            .to_string()
            .contains("--tls-certs-dir")
    );
}

#[tokio::test]
async fn four_mebibytes_are_accepted_and_not_a_byte_more() {
    let address = serve(echo, &["--insecure"]).await;
    let channel = connect(&address).await;
    for (size, code) in
        [(4 * MIB - 1, Code::Ok), (4 * MIB, Code::Ok), (4 * MIB + 1, Code::OutOfRange)]
    {
        assert_eq!(send(channel.clone(), framed(&request_of(size))).await, code, "{size} bytes");
    }

    let address = serve(echo, &["--insecure", "--max-recv-message-size=1000"]).await;
    assert_eq!(send(connect(&address).await, framed(&request_of(1001))).await, Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_large_requests_are_answered_two_at_a_time() {
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = {
        let peak = peak.clone();
        move |request: RunFunctionRequest| {
            peak.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            drop(request);
            now.fetch_sub(1, SeqCst);
            Ok(RunFunctionResponse::default())
        }
    };
    let address = serve(counting, &["--insecure", "--max-concurrent-requests=2"]).await;
    // One connection: waiting requests must not use up the flow-control window of running ones.
    assert_eq!(send_hundred(&address).await, [Code::Ok; 100]);
    assert_eq!(peak.load(SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_large_requests_use_the_memory_of_two() {
    let function = Process::start(&["--max-concurrent-requests=2"]);
    assert_eq!(send_hundred(&function.address().await).await, [Code::InvalidArgument; 100]);
    // Two messages twice, as bytes and decoded, the windows and the process itself. All hundred
    // messages are 400 MiB.
    assert!(function.peak_memory() < 100 * 1024, "{} KiB", function.peak_memory());
}

#[tokio::test]
async fn health_answers_while_all_permits_are_taken() {
    let address = serve(echo, &["--insecure", "--max-concurrent-requests=1"]).await;
    let channel = connect(&address).await;
    let stalled = begin(channel.clone(), request()).await;
    let waiting = begin(channel.clone(), request()).await;
    let health =
        HealthClient::new(channel).check(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(health.status(), ServingStatus::Serving);
    for call in [stalled, waiting] {
        drop(call.end);
        assert_eq!(call.answer.await.unwrap().unwrap().desired, request().desired);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stalls_loses_its_turn() {
    let address = serve(echo, &["--insecure", "--max-concurrent-requests=1"]).await;
    let channel = connect(&address).await;
    let stalled = begin(channel.clone(), request()).await;
    assert_eq!(stalled.answer.await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(send(channel, framed(&[])).await, Code::Ok);
}

#[tokio::test]
async fn reflection_knows_the_service() {
    let channel = connect(&serve(echo, &["--insecure"]).await).await;
    let list = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let mut client = ServerReflectionClient::new(channel);
    let mut answers =
        client.server_reflection_info(tokio_stream::once(list)).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(services) = answer else { panic!("{answer:?}") };
    let names: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
    assert!(names.contains(&"apiextensions.fn.proto.v1.FunctionRunnerService"), "{names:?}");
}

#[tokio::test]
async fn malformed_request_is_an_invalid_argument() {
    let function = Process::start(&[]);
    let channel = connect(&function.address().await).await;
    assert_eq!(send(channel.clone(), framed(&[])).await, Code::InvalidArgument);
    assert_eq!(send(channel, framed(b"\xff\xff")).await, Code::InvalidArgument);
}

#[tokio::test]
async fn calls_in_flight_finish_after_sigterm() {
    let mut function = Process::start(&[]);
    let (address, metrics) = (function.address().await, function.metrics_address().await);
    let call = begin(connect(&address).await, RunFunctionRequest::default()).await;
    while counter(&scrape(&metrics).await, "grpc_server_started_total", "RunFunction") == 0 {}

    function.terminate();
    function.line("shutting down").await;
    // Shortly after this log line, no connection is accepted. The loop ends before the call's ten
    // seconds do, so a late end would give another code.
    while connect_to(&address, None).await.is_ok() {}
    drop(call.end);
    assert_eq!(
        call.answer.await.unwrap().unwrap_err().code(),
        Code::InvalidArgument,
        "the function's own answer"
    );
    assert_eq!(function.ended().await.code(), Some(0));
}

#[tokio::test]
async fn thousands_of_half_open_handshakes_use_little_memory_and_calls_are_answered() {
    let authority = Authority::new();
    let directory = authority.server_directory();
    let function = Process::with_tls(directory.path());
    let address = function.address().await;
    let client = || Some(authority.trusting().identity(authority.client()));
    let early = connect_to(&address, client()).await.unwrap();
    // A record of 16 KiB without its last byte.
    let mut record = vec![0; 5 + 16 * 1024 - 1];
    record[..9].copy_from_slice(&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]);
    let mut halves = Vec::new();
    for _ in 0..6000 {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        // A closed connection rejects the record.
        let _ = stream.write_all(&record).await;
        halves.push(stream);
    }
    let late = connect_to(&address, client()).await.unwrap();
    for channel in [early, late] {
        let mut client = FunctionRunnerServiceClient::new(channel);
        let answer = client.run_function(of_sdk(&request())).await;
        assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument, "the function's own");
    }
    let peak = function.peak_memory() / 1024;
    assert!(peak < 100, "{peak} MiB");
}

#[tokio::test]
async fn half_open_connections_to_the_metrics_are_bounded() {
    let function = Process::start(&[]);
    let address = function.metrics_address().await;
    let mut halves = Vec::new();
    for _ in 0..300 {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: ").await.unwrap();
        halves.push(stream);
    }
    assert!(scrape(&address).await.contains("paved_road_waiting_requests"));
    let mut open = 0;
    for half in &mut halves {
        let mut byte = [0];
        let read = half.read(&mut byte);
        open += usize::from(tokio::time::timeout(Duration::from_millis(5), read).await.is_err());
    }
    assert!(open <= 64, "{open} connections are open");
}

#[tokio::test]
async fn metrics_include_the_common_series_and_our_own() {
    let function = Process::start(&[]);
    let channel = connect(&function.address().await).await;
    send(channel.clone(), framed(&[])).await;
    let mut client = FunctionRunnerServiceClient::new(channel.clone());
    for kind in ["GpuDevWorkspace", "Teapot"] {
        client.run_function(of_sdk(&composite(kind))).await.unwrap();
    }
    HealthClient::new(channel).check(HealthCheckRequest::default()).await.unwrap();

    let metrics = scrape(&function.metrics_address().await).await;
    for series in ["started", "handled", "msg_received"] {
        assert_eq!(
            counter(&metrics, &format!("grpc_server_{series}_total"), "RunFunction"),
            3,
            "{series}"
        );
        assert_eq!(
            counter(&metrics, &format!("grpc_server_{series}_total"), "Check"),
            1,
            "{series}"
        );
    }
    assert_eq!(counter(&metrics, "grpc_server_msg_sent_total", "Check"), 1);
    assert_eq!(
        counter(&metrics, "grpc_server_msg_sent_total", "RunFunction"),
        2,
        "an error does not count as a message"
    );
    assert_eq!(
        counter(&metrics, "paved_road_answers_total", r#"kind="other",outcome="invalid""#),
        1
    );
    assert_eq!(counter(&metrics, "paved_road_answers_total", r#"kind="other",outcome="fatal""#), 1);
    assert_eq!(
        counter(&metrics, "paved_road_answers_total", r#"kind="GpuDevWorkspace",outcome="fatal""#),
        1
    );
    assert_eq!(
        counter(
            &metrics,
            "paved_road_compose_seconds_bucket",
            r#"le="+Inf",kind="GpuDevWorkspace""#
        ),
        1
    );
    assert!(!metrics.contains("Teapot"), "unknown kinds create no series");
    assert_eq!(counter(&metrics, "paved_road_waiting_requests", ""), 0);
}

#[tokio::test]
async fn log_names_the_composite_and_contains_no_secret() {
    for level in ["info", "debug"] {
        let function = Process::logging(level, &[]);
        let mut client = FunctionRunnerServiceClient::new(connect(&function.address().await).await);
        client.run_function(of_sdk(&composite("Teapot"))).await.unwrap();
        for example in support::examples() {
            client.run_function(of_sdk(&with_canaries(example.request()))).await.unwrap();
        }
        let line = function.line("request answered").await;
        let log = function.log();
        assert!(!log.contains("canary"), "{log}");
        for said in ["Teapot", "kitchen", "kettle", "1b4e28ba", "seconds"] {
            assert!(line.to_string().contains(said), "{said}: {line}");
        }
    }
}

/// Serves `function` in this process until the test ends.
async fn serve(function: impl Function, flags: &[&str]) -> String {
    let common = ["function", "--address=127.0.0.1:0", "--metrics-address="];
    let flags = Flags::parse_from(common.iter().chain(flags));
    let server = Server::bind(function, vec![], &flags).await.unwrap();
    let address = server.address().to_string();
    tokio::spawn(server.serve(std::future::pending()));
    address
}

/// A function that adds no resource.
#[allow(clippy::unnecessary_wraps)]
fn echo(request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
    Ok(RunFunctionResponse { desired: request.desired, ..RunFunctionResponse::default() })
}

/// The same, and the number of its calls.
fn counting() -> (impl Function, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let function = move |request| {
        counted.fetch_add(1, SeqCst);
        echo(request)
    };
    (function, calls)
}

fn request() -> RunFunctionRequest {
    let desired =
        State { resources: [("bucket".into(), Resource::default())].into(), ..State::default() };
    RunFunctionRequest { desired: Some(desired), ..RunFunctionRequest::default() }
}

/// An XR with secret connection details, and a composed resource with them.
fn composite(kind: &str) -> RunFunctionRequest {
    let composite = serde_json::json!({
        "apiVersion": "example.org/v1", "kind": kind,
        "metadata": {"name": "kettle", "namespace": "kitchen", "uid": "1b4e28ba"},
    });
    let secret = || [("password".to_owned(), b"canary".to_vec())].into();
    let composite = Resource {
        resource: Some(value::structure(composite.as_object().unwrap().clone())),
        connection_details: secret(),
        ..Resource::default()
    };
    let composed = Resource { connection_details: secret(), ..Resource::default() };
    let observed =
        State { composite: Some(composite), resources: [("database".into(), composed)].into() };
    RunFunctionRequest { observed: Some(observed), ..RunFunctionRequest::default() }
}

/// The same request, with a secret in all connection details.
fn with_canaries(mut request: RunFunctionRequest) -> RunFunctionRequest {
    let observed = request.observed.as_mut().unwrap();
    for resource in observed.composite.iter_mut().chain(observed.resources.values_mut()) {
        let details = &mut resource.connection_details;
        details.insert("password".into(), Vec::new());
        for value in details.values_mut() {
            *value = b"canary".to_vec();
        }
    }
    request
}

async fn send_hundred(address: &str) -> Vec<Code> {
    let channel = connect(address).await;
    let frame = framed(&request_of(4 * MIB - 1));
    let calls: Vec<_> =
        (0..100).map(|_| tokio::spawn(send(channel.clone(), frame.clone()))).collect();
    let mut codes = Vec::new();
    for call in calls {
        codes.push(call.await.unwrap());
    }
    codes
}

async fn call(address: &str, tls: Option<ClientTlsConfig>) -> Result<RunFunctionResponse, Status> {
    let channel =
        connect_to(address, tls).await.map_err(|error| Status::unavailable(error.to_string()))?;
    let answer = FunctionRunnerServiceClient::new(channel).run_function(of_sdk(&request())).await?;
    Ok(RunFunctionResponse::decode(&*answer.into_inner().encode_to_vec()).unwrap())
}

/// The same request for the SDK's client, which has types of its own.
fn of_sdk(request: &RunFunctionRequest) -> function_sdk_rust::proto::v1::RunFunctionRequest {
    Message::decode(&*request.encode_to_vec()).unwrap()
}

async fn connect(address: &str) -> Channel {
    connect_to(address, None).await.unwrap()
}

async fn connect_to(
    address: &str,
    tls: Option<ClientTlsConfig>,
) -> Result<Channel, tonic::transport::Error> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::new(format!("{scheme}://{address}"))?;
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls)?;
    }
    endpoint.connect().await
}

/// The sum of a metric's samples with `labels` among their labels.
fn counter(metrics: &str, name: &str, labels: &str) -> u64 {
    let samples = metrics.lines().filter(|line| line.starts_with(name) && line.contains(labels));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}
