//! A program's metrics in Prometheus's format.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use axum::http::Request;
use kube::{Client, Config};

/// The metrics of a program on loopback.
pub struct Metrics {
    client: Client,
}

impl Metrics {
    /// The metrics at `/metrics` of a port.
    pub fn at(port: u16) -> Result<Self> {
        let address =
            format!("http://127.0.0.1:{port}").parse().context("an address on loopback")?;
        Ok(Self { client: Client::try_from(Config::new(address))? })
    }

    /// The metrics of the API server that a client reaches.
    pub fn from_client(client: Client) -> Self {
        Self { client }
    }

    /// A metric's samples by their labels, as printed:
    /// `controller="composite/xgpudevworkspaces.platform.acme.io"`. A metric without counts has no
    /// samples.
    pub async fn samples(&self, metric: &str) -> Result<BTreeMap<String, f64>> {
        let request = Request::get("/metrics").body(Vec::new())?;
        Ok(samples(&self.client.request_text(request).await.context("reading metrics")?, metric))
    }

    /// The sum of a metric's samples that have a label.
    pub async fn sum(&self, metric: &str, label: &str) -> Result<f64> {
        let samples = self.samples(metric).await?;
        Ok(samples
            .into_iter()
            .filter(|(labels, _)| labels.contains(label))
            .map(|(_, value)| value)
            .sum())
    }
}

fn samples(text: &str, metric: &str) -> BTreeMap<String, f64> {
    let sample = |line: &str| {
        let (labels, value) = line.strip_prefix(metric)?.strip_prefix('{')?.rsplit_once('}')?;
        Some((labels.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_belong_to_the_metric_with_the_exact_name() {
        let text = "# HELP opens_total Opened.\nopens_total{controller=\"a\"} 2\nopens_total_created{controller=\"a\"} 1.7e+09\n";
        assert_eq!(
            samples(text, "opens_total"),
            BTreeMap::from([("controller=\"a\"".to_owned(), 2.0)])
        );
    }
}
