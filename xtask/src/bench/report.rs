//! The figures as Markdown.

use std::time::Duration;

use super::Line;
use super::client::Figures;
use super::servers::Memory;

/// Requests per second and latencies.
pub(super) fn speed(lines: &[Line]) {
    println!(
        "| environment | resources | request, answer KiB | in flight | function | p50, p99 ms | no-op | p50, p99 ms | ratio | no-op carrying | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for Line {
        environment,
        resources,
        in_flight,
        bytes: (request, answer),
        function,
        no_op,
        carrying,
    } in lines
    {
        let ratio = |other: &Figures| function.per_second / other.per_second;
        println!(
            "| {environment} | {resources} | {}, {} | {in_flight} | {:.0}/s | {} | {:.0}/s | {} | {:.2} | {:.0}/s | {:.2} |",
            kib(*request),
            kib(*answer),
            function.per_second,
            latency(function),
            no_op.per_second,
            latency(no_op),
            ratio(no_op),
            carrying.per_second,
            ratio(carrying),
        );
    }
}

/// Memory of the function.
pub(super) fn memory(rows: &[(String, usize, Memory, Memory)]) {
    println!(
        "\n| environment, resources | in flight | RSS idle MiB | RSS after MiB | RSS peak MiB |"
    );
    println!("|---|---|---|---|---|");
    for (environment, in_flight, idle, after) in rows {
        println!(
            "| {environment} | {in_flight} | {} | {} | {} |",
            mib(idle.now),
            mib(after.now),
            mib(after.peak)
        );
    }
}

/// The memory and time of a hundred large requests.
pub(super) fn hundred(rows: &[(&str, Memory, Duration)]) {
    println!("\n| 100 requests of nearly 4 MiB at once | RSS peak MiB | seconds |");
    println!("|---|---|---|");
    for (name, memory, took) in rows {
        println!("| {name} | {} | {:.1} |", mib(memory.peak), took.as_secs_f64());
    }
}

fn latency(figures: &Figures) -> String {
    format!("{:.2}, {:.2}", figures.p50.as_secs_f64() * 1e3, figures.p99.as_secs_f64() * 1e3)
}

fn kib(bytes: usize) -> String {
    format!("{}.{}", bytes / 1024, bytes % 1024 * 10 / 1024)
}

fn mib(kib: u64) -> String {
    format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024)
}
