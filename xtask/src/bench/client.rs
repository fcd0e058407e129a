//! The load. All calls share the bytes of one message, so that the client uses little CPU.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use tokio::task::JoinSet;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request};
use tonic::transport::Channel;
use tower::{Service as _, ServiceExt as _};

const RUN_FUNCTION: &str =
    "http://function/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/// The results of a load.
pub(super) struct Figures {
    /// Responses per second.
    pub(super) per_second: f64,
    /// The median time of a response.
    pub(super) p50: Duration,
    /// The 99th percentile of the time of a response.
    pub(super) p99: Duration,
}

/// Keeps `in_flight` calls running for the given time.
pub(super) async fn load(
    channel: &Channel,
    message: &Bytes,
    in_flight: usize,
    span: Duration,
) -> Result<Figures> {
    let frame = framed(message)?;
    let (started, mut callers) = (Instant::now(), JoinSet::new());
    for _ in 0..in_flight {
        let (channel, frame) = (channel.clone(), frame.clone());
        callers.spawn(async move {
            let mut times = Vec::new();
            while started.elapsed() < span {
                let begun = Instant::now();
                call(channel.clone(), frame.clone()).await?;
                times.push(begun.elapsed());
            }
            Ok::<_, anyhow::Error>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(caller) = callers.join_next().await {
        times.extend(caller??);
    }
    let took = started.elapsed();
    times.sort_unstable();
    let quantile = |percent: usize| {
        times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied()
    };
    Ok(Figures {
        per_second: f64::from(u32::try_from(times.len())?) / took.as_secs_f64(),
        p50: quantile(50).context("no answer")?,
        p99: quantile(99).context("no answer")?,
    })
}

/// Sends this many calls at once, and waits for all responses.
pub(super) async fn burst(channel: &Channel, message: &Bytes, calls: usize) -> Result<Duration> {
    let frame = framed(message)?;
    let (started, mut callers) = (Instant::now(), JoinSet::new());
    for _ in 0..calls {
        callers.spawn(call(channel.clone(), frame.clone()));
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(started.elapsed())
}

/// Makes one call. Any status except OK is an error.
async fn call(mut channel: Channel, frame: Bytes) -> Result<()> {
    let request = Request::post(RUN_FUNCTION)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Full::new(frame)))?;
    let response = channel.ready().await?.call(request).await?;
    let headers = response.headers().clone();
    let body = response.into_body().collect().await?;
    let status = |headers: &HeaderMap| {
        headers.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()))
    };
    let code = body
        .trailers()
        .and_then(status)
        .or_else(|| status(&headers))
        .context("an answer without status")?;
    ensure!(code == Code::Ok, "the server answered {code}");
    Ok(())
}

/// A message in gRPC's framing.
fn framed(message: &Bytes) -> Result<Bytes> {
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len())?);
    frame.put_slice(message);
    Ok(frame.freeze())
}
