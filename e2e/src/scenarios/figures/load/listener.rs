//! A stream of changes at the portal, as a browser holds it. It reconnects at once, with the id of
//! the last event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The pause before a new connection, long enough to make refused connections cheap.
const PAUSE: Duration = Duration::from_millis(50);

/// The events of a stream.
#[derive(Default)]
pub struct Heard {
    /// The existing environments: names and resource versions.
    pub known: BTreeMap<String, u64>,
    /// Changes in the order of their arrival: the resource version, and the time since the change
    /// began.
    pub changes: Vec<(u64, Duration)>,
    /// Events that contradict earlier events.
    pub doubled: Vec<String>,
    /// The number of snapshots.
    pub snapshots: usize,
    /// The end of the last snapshot.
    pub synced: Option<Instant>,
    /// Whether a snapshot is incomplete.
    is_partial: bool,
}

/// The relevant fields of an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    name: String,
    resource_version: String,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    /// The time when the change began, in microseconds since 1970.
    available: Option<i64>,
}

impl Heard {
    fn take(&mut self, event: &str, data: &str) -> Result<()> {
        match event {
            "snapshot" => {
                self.known.clear();
                self.snapshots += 1;
                self.is_partial = true;
            }
            "synced" => {
                self.synced = Some(Instant::now());
                self.is_partial = false;
            }
            "added" | "modified" | "deleted" => self.change(event, data)?,
            _ => {}
        }
        Ok(())
    }

    fn change(&mut self, event: &str, data: &str) -> Result<()> {
        let now = Timestamp::now();
        let View { name, resource_version, status } =
            serde_json::from_str(data).context("an environment")?;
        let version: u64 = resource_version.parse().context("a resource version")?;
        let line = format!("{event} {name} {version}");
        let before = if event == "deleted" {
            self.known.remove(&name)
        } else {
            self.known.insert(name, version)
        };
        let follows = match event {
            "added" => before.is_none(),
            "deleted" => before.is_some(),
            _ => before.is_some_and(|before| before < version),
        };
        if !follows {
            self.doubled.push(format!("{line} after {before:?}"));
        }
        if !self.is_partial {
            let begun =
                Timestamp::from_microsecond(status.available.context("when it was begun")?)?;
            self.changes
                .push((version, Duration::try_from(now.duration_since(begun)).unwrap_or_default()));
        }
        Ok(())
    }
}

/// A client with a stream.
#[derive(Clone)]
pub struct Listener {
    /// The index of its person.
    pub person: usize,
    /// The index of its first replica.
    pub begins_at: usize,
    heard: Arc<Mutex<Heard>>,
}

impl Listener {
    /// A client without events.
    pub fn new(person: usize, begins_at: usize) -> Self {
        Self { person, begins_at, heard: Arc::default() }
    }

    /// Its events.
    pub fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens permanently. When a stream ends, it continues at the next replica.
    pub async fn listen(self, replicas: Arc<[String]>, token: String) {
        let mut last = String::new();
        for address in replicas.iter().cycle().skip(self.begins_at) {
            // The comparison at the end finds lost events.
            let _ = self.follow(address, &token, &mut last).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Uses HTTP/1.0, because its answers are not chunked.
    async fn follow(&self, address: &str, token: &str, last: &mut String) -> Result<()> {
        let (read, mut write) = TcpStream::connect(address).await?.into_split();
        let seen =
            if last.is_empty() { String::new() } else { format!("Last-Event-ID: {last}\r\n") };
        let head = format!(
            "GET /api/v1/watch HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{seen}\r\n"
        );
        write.write_all(head.as_bytes()).await?;
        let mut lines = BufReader::new(read).lines();
        let status = lines.next_line().await?.context("no answer")?;
        ensure!(status.contains(" 200 "), "{status}");
        let (mut event, mut id, mut data) = (String::new(), None, String::new());
        while let Some(line) = lines.next_line().await? {
            match line.split_once(": ") {
                Some(("event", text)) => text.clone_into(&mut event),
                Some(("id", text)) => id = Some(text.to_owned()),
                Some(("data", text)) => text.clone_into(&mut data),
                None if line.is_empty() => {
                    self.heard().take(&event, &data)?;
                    // An event counts as seen only after it was handled completely.
                    *last = id.take().unwrap_or_else(|| std::mem::take(last));
                    event.clear();
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    #[test]
    fn repeated_or_late_event_is_noticed() {
        let mut heard = Heard::default();
        let mut told = |event: &str, version: u64| {
            let data = format!(
                r#"{{"name": "a", "resourceVersion": "{version}", "parts": [], "status": {{"available": 1}}}}"#
            );
            heard.take(event, &data).unwrap();
            heard.doubled.len()
        };
        told("snapshot", 0);
        assert_eq!(told("added", 3), 0);
        told("synced", 0);
        assert_eq!(told("modified", 4), 0);
        assert_eq!(told("modified", 4), 1, "twice");
        assert_eq!(told("modified", 3), 2, "too late");
        assert_eq!(told("added", 5), 3, "it is there");
        assert_eq!(told("deleted", 6), 3);
        assert_eq!(told("deleted", 7), 4, "it is gone");
        told("snapshot", 0);
        assert_eq!(told("added", 8), 4);
        assert_eq!((heard.snapshots, heard.changes.len()), (2, 6), "a snapshot contains no change");
    }
}
