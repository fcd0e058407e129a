//! JSON responses of the portal. Their length depends on the data, so it has a limit. Handlers
//! respond with [`Answer`], and a test rejects other JSON bodies and unlimited streams.

use std::io;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::{MEDIA_TYPE, Problem};

/// The maximum length of a response, in bytes. A page of 500 environments takes a few megabytes.
const LARGEST: usize = 32 << 20;

/// A JSON response.
pub(super) struct Answer<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let Ok(json) = written(&self.0, LARGEST) else {
            let detail = format!(
                "The response is larger than {} MiB. Request fewer objects.",
                LARGEST >> 20
            );
            return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response();
        };
        ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], json)
            .into_response()
    }
}

impl Problem {
    /// The complete response.
    pub(super) fn answer(&self) -> Response<Body> {
        let mut response = (self.status(), Answer(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"paved-portal\""),
            );
        }
        if self.status() == StatusCode::TOO_MANY_REQUESTS
            || self.status() == StatusCode::SERVICE_UNAVAILABLE
        {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }
}

/// Serializes to JSON of at most `largest` bytes.
fn written(value: &impl Serialize, largest: usize) -> Result<Vec<u8>, serde_json::Error> {
    let mut writer = Bounded { bytes: Vec::with_capacity(256), left: largest };
    serde_json::to_writer(&mut writer, value)?;
    Ok(writer.bytes)
}

struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left =
            self.left.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("too long"))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls `each` with the path and the text of every source file, for tests about all of them.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn each_source(each: &mut dyn FnMut(&std::path::Path, &str)) {
    fn visit(folder: &std::path::Path, each: &mut dyn FnMut(&std::path::Path, &str)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, each);
            } else {
                each(&path, &std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    visit(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), each);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn answer_ends_at_its_bound() {
        assert_eq!(written(&"abc", 5).unwrap(), b"\"abc\"");
        assert!(written(&"abcd", 5).is_err());
        assert!(written(&vec!["x".repeat(1_000); 1_000], 10_000).is_err());
    }

    /// This test fails for a new response or stream without a limit.
    #[test]
    fn every_answer_and_stream_has_a_bound() {
        // The allowed files first take a permit from `Streams`.
        let allowed = [
            ("Sse::new(", "api/watch.rs"),
            ("on_upgrade(", "legacy_api/status.rs"),
            ("from_stream(", "none"),
            ("axum::Json", "none"),
            ("axum::extract::Json", "none"),
        ];
        each_source(&mut |path, text| {
            let imports =
                text.lines().any(|line| line.starts_with("use axum::{") && line.contains("Json"));
            assert!(!imports, "{}: answer with Answer", path.display());
            for (word, file) in allowed {
                let is_allowed = path.ends_with("src/answer.rs") || path.ends_with(file);
                assert!(!text.contains(word) || is_allowed, "{}: {word}", path.display());
            }
        });
    }
}
