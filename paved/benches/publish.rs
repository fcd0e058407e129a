//! Compares the speed of `paved publish` with `aws s3 sync`. Both upload the same tree to the same
//! server, one after the other in each round.
//!
//! The benchmark fails if `paved` takes longer than the AWS CLI by more than a tenth, or needs more
//! memory than [`MEMORY`].
//!
//! Run it with `cargo bench --workspace --bench publish`. moto and the AWS CLI come from PyPI, into
//! virtual environments under `target/`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use support::kubernetes::Cluster;
use support::s3::S3;
use support::site::{asset, environment, site, write};
use xtask::python::program;

/// The reference for the comparison.
const AWS: &str = "awscli==1.46.3";

const ROUNDS: usize = 5;

const FILES: usize = 2000;

/// The minimum speed of `paved`, relative to the AWS CLI's speed.
const RATIO: f64 = 0.9;

/// The maximum memory of `paved` in KiB, for uploads of any size.
const MEMORY: u64 = 64 << 10;

/// The steps of each round, in this order.
const STEPS: [&str; 3] = ["everything is new", "nothing has changed", "20 files have changed"];

#[tokio::main]
async fn main() {
    let (s3, site) = (S3::start().await, site(FILES));
    let aws = program(AWS, "aws").unwrap();
    let mut times: Vec<[[Duration; 2]; STEPS.len()]> = Vec::new();
    let mut peak = 0;
    for round in 0..ROUNDS {
        let buckets = ["paved", "aws"].map(|name| format!("{name}-{round}"));
        for bucket in &buckets {
            s3.create(bucket).await;
        }
        let cluster =
            Cluster::with(environment(&json!({"frontendBucketName": buckets[0]})), &[]).await;
        let ours = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
            command
                .arg("publish")
                .arg(site.path())
                .args(["shop", "--kubeconfig"])
                .arg(cluster.kubeconfig());
            command
        };
        let theirs = || {
            let mut command = Command::new(&aws);
            command
                .args(["s3", "sync", "--only-show-errors"])
                .arg(site.path())
                .arg(format!("s3://{}", buckets[1]));
            command
        };
        times.push(std::array::from_fn(|step| {
            if step == 2 {
                (4..24).for_each(|number| {
                    write(&site, &asset(number), &format!("changed in round {round}\n"));
                });
            }
            // The second command finds the files in the system's cache, so the commands alternate.
            let mut time = [Duration::ZERO; 2];
            for turn in 0..2 {
                let who = (turn + round) % 2;
                let (taken, memory) = timed(if who == 0 { ours() } else { theirs() }, &s3.url);
                time[who] = taken;
                if who == 0 {
                    peak = peak.max(memory);
                }
            }
            time
        }));
    }
    println!("paved publish takes {peak} KiB at most");
    let mut slow = Vec::new();
    for (step, name) in STEPS.iter().enumerate() {
        let [ours, theirs] =
            [0, 1].map(|who| median(times.iter().map(|round| round[step][who]).collect()));
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{name:24} paved publish {ours:>8.2?}   aws s3 sync {theirs:>8.2?}   {ratio:.2} times as fast"
        );
        if ratio < RATIO {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "less than {RATIO} times as fast as aws s3 sync: {slow:?}");
    assert!((1..=MEMORY).contains(&peak), "{peak} KiB of memory; at most {MEMORY} are allowed");
}

/// The run time and the peak memory in KiB.
fn timed(mut command: Command, url: &str) -> (Duration, u64) {
    command.envs([
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_ENDPOINT_URL", url),
    ]);
    command.envs([("AWS_DEFAULT_REGION", "us-east-1"), ("AWS_EC2_METADATA_DISABLED", "true")]);
    command.env("AWS_CONFIG_FILE", Path::new("/dev/null")).stdout(Stdio::null());
    let begin = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        peak = memory(child.id()).max(peak);
        sleep(Duration::from_millis(2));
    };
    assert!(status.success(), "{command:?}");
    (begin.elapsed(), peak)
}

/// The peak memory of a process in KiB, or 0 if it has ended.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    high.and_then(|high| high.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
