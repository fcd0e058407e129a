//! The bucket: its objects, and the requests that change them.

use std::collections::BTreeMap;

use aws_smithy_http::label::{EncodingStrategy, fmt_string};
use aws_smithy_types::body::SdkBody;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use md5::{Digest, Md5};

use super::credentials::Account;
use super::error::{answered, explain, failed};
use super::headers::Headers;
use super::multipart::Sum;
use super::service::{Answer, Record, Service, element};
use super::shown;
use crate::failure::Failure;

/// The age of an abandoned multipart upload. Its parts are stored and billed until it is aborted.
const GIVEN_UP: SignedDuration = SignedDuration::from_hours(24);

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A bucket, with the caller's credentials.
pub(super) struct Bucket {
    service: Service,
    name: String,
}

/// An object in the bucket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    /// In bytes.
    pub(super) size: u64,
    pub(super) etag: String,
    /// The Unix time of the last write, in seconds.
    pub(super) written: i64,
}

impl Bucket {
    pub(super) fn new(account: &Account, name: &str) -> Self {
        Self { service: account.bucket(name), name: name.to_owned() }
    }

    fn act(&self, act: &str, key: &str) -> String {
        format!("{act} {} in bucket {}", shown(key), self.name)
    }

    async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&'static str, String)],
        body: impl Into<SdkBody>,
        act: &str,
    ) -> Result<Answer, Failure> {
        let sent = self.service.send(method, target, headers, body).await;
        sent.map_err(|error| explain(&error, act))
    }

    /// All objects, by key.
    pub(super) async fn list(&self) -> Result<BTreeMap<String, Stored>, Failure> {
        let act = format!("list bucket {}", self.name);
        let mut stored = BTreeMap::new();
        let mut last: Option<String> = None;
        loop {
            // XML cannot hold every character of a key.
            let mut target = "/?list-type=2&encoding-type=url".to_owned();
            if let Some(token) = &last {
                target = format!("{target}&continuation-token={}", encoded(token));
            }
            let answer = self.send("GET", &target, &[], "", &act).await?;
            let page = answer.record("ListBucketResult", &act)?;
            let is_encoded = page.get("EncodingType").is_some_and(|encoding| encoding == "url");
            for mut object in answer.records("Contents") {
                let key = object.remove("Key");
                let key = key.map(|key| if is_encoded { decoded(&key) } else { key });
                stored.extend(key.map(|key| (key, Stored::read(&object))));
            }
            let next = page.get("NextContinuationToken").cloned();
            if next.is_none() || next == last {
                return Ok(stored);
            }
            last = next;
        }
    }

    /// Uploads a file in one request.
    pub(super) async fn put(
        &self,
        key: &str,
        headers: &Headers,
        body: SdkBody,
        sum: Sum,
    ) -> Result<(), Failure> {
        let [content_type, cache_control] = file_headers(headers);
        let headers = [content_type, cache_control, content_md5(sum)];
        let act = self.act("upload", key);
        self.send("PUT", &path(key), &headers, body, &act).await.map(drop)
    }

    /// Begins a multipart upload, and returns its ID.
    pub(super) async fn begin(&self, key: &str, headers: &Headers) -> Result<String, Failure> {
        let act = self.act("upload", key);
        let target = format!("{}?uploads", path(key));
        let begun = self.send("POST", &target, &file_headers(headers), "", &act).await?;
        let id = begun.record("InitiateMultipartUploadResult", &act)?.remove("UploadId");
        id.ok_or_else(|| failed(&act, "the server gave the upload no id"))
    }

    /// Uploads a part, and returns its `ETag`.
    pub(super) async fn part(
        &self,
        key: &str,
        upload: &str,
        number: i32,
        body: SdkBody,
        sum: Sum,
    ) -> Result<String, Failure> {
        let target = format!("{}?partNumber={number}&uploadId={}", path(key), encoded(upload));
        let act = self.act("upload", key);
        let sent = self.send("PUT", &target, &[content_md5(sum)], body, &act).await?;
        sent.etag.ok_or_else(|| failed(&act, "the server gave the part no ETag"))
    }

    /// Completes a multipart upload. The `ETag`s are in the order of the parts.
    pub(super) async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: &[String],
    ) -> Result<(), Failure> {
        let part = |(number, etag): (usize, &String)| {
            let (number, etag) =
                (element("PartNumber", &number.to_string()), element("ETag", etag));
            format!("<Part>{number}{etag}</Part>")
        };
        let parts: String = (1..).zip(parts).map(part).collect();
        let root = "CompleteMultipartUpload";
        let body = format!("<{root} xmlns=\"{NAMESPACE}\">{parts}</{root}>");
        let target = format!("{}?uploadId={}", path(key), encoded(upload));
        let act = self.act("upload", key);
        let sent = self.send("POST", &target, &[xml()], body, &act).await?;
        sent.record("CompleteMultipartUploadResult", &act).map(drop)
    }

    /// Aborts a multipart upload. The caller reports its own failure, and ignores a failure here.
    pub(super) async fn abort(&self, key: &str, upload: &str) {
        let target = format!("{}?uploadId={}", path(key), encoded(upload));
        _ = self.service.send("DELETE", &target, &[], "").await;
    }

    /// Aborts uploads of killed runs, if the caller may do so. Considers only the first page of the
    /// list.
    pub(super) async fn clean_up(&self) {
        let listed = self.service.send("GET", "/?uploads", &[], "").await;
        for upload in listed.map(|listed| listed.records("Upload")).unwrap_or_default() {
            let begun = upload.get("Initiated").and_then(|begun| begun.parse().ok());
            if let (Some(key), Some(id), true) =
                (upload.get("Key"), upload.get("UploadId"), is_given_up(begun, Timestamp::now()))
            {
                self.abort(key, id).await;
            }
        }
    }

    /// Deletes objects.
    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), Failure> {
        /// The maximum number of objects in one request to S3.
        const BATCH_SIZE: usize = 1000;
        for some in keys.chunks(BATCH_SIZE) {
            let act = self.act("delete", some.first().map_or("", String::as_str));
            let object = |key: &String| format!("<Object>{}</Object>", element("Key", key));
            let objects: String = some.iter().map(object).collect();
            let quiet = element("Quiet", "true");
            let body = format!("<Delete xmlns=\"{NAMESPACE}\">{objects}{quiet}</Delete>");
            let headers = [xml(), content_md5(Md5::digest(&body).into())];
            let answer = self.send("POST", "/?delete", &headers, body, &act).await?;
            answer.record("DeleteResult", &act)?;
            if let Some(refused) = answer.records("Error").first() {
                let text = |name| refused.get(name).map_or("", String::as_str);
                let status = if text("Code") == "AccessDenied" { 403 } else { 400 };
                let act = self.act("delete", text("Key"));
                return Err(answered(status, text("Code"), text("Message"), &act));
            }
        }
        Ok(())
    }
}

impl Stored {
    /// Reads an entry of a bucket's list.
    fn read(object: &Record) -> Self {
        let text = |name| object.get(name).map_or("", String::as_str);
        Self {
            size: text("Size").parse().unwrap_or_default(),
            etag: text("ETag").trim_matches('"').to_owned(),
            written: text("LastModified").parse().map_or(0, Timestamp::as_second),
        }
    }
}

/// The path of an object.
fn path(key: &str) -> String {
    format!("/{}", fmt_string(key, EncodingStrategy::Greedy))
}

/// A value of a query.
fn encoded(value: &str) -> String {
    fmt_string(value, EncodingStrategy::Default)
}

fn file_headers(headers: &Headers) -> [(&'static str, String); 2] {
    [
        ("content-type", headers.content_type.clone()),
        ("cache-control", headers.cache_control.to_owned()),
    ]
}

fn xml() -> (&'static str, String) {
    ("content-type", "application/xml".to_owned())
}

/// The only checksum that every S3-compatible server supports.
fn content_md5(sum: Sum) -> (&'static str, String) {
    ("content-md5", BASE64_STANDARD.encode(sum))
}

/// Decodes a key from a bucket's list.
fn decoded(key: &str) -> String {
    // `&` and `=` are encoded, so there is exactly one pair.
    url::form_urlencoded::parse(key.as_bytes())
        .map(|(key, _)| key.into_owned())
        .next()
        .unwrap_or_default()
}

fn is_given_up(begun: Option<Timestamp>, now: Timestamp) -> bool {
    begun.is_some_and(|begun| now.duration_since(begun) > GIVEN_UP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_list_is_decoded_whole() {
        for (encoded, key) in [
            ("a+b%2Bc%20d/e%26f%3Dg.css", "a b+c d/e&f=g.css"),
            ("%01%0A%C2%9B", "\u{1}\n\u{9b}"),
            ("plain/index.html", "plain/index.html"),
        ] {
            assert_eq!(decoded(encoded), key);
        }
    }

    #[test]
    fn entry_of_a_list_is_read() {
        let text = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        let entry = [
            ("Size", "3000000000"),
            ("ETag", "\"0123-2\""),
            ("LastModified", "2024-05-01T00:00:01.000Z"),
        ];
        let read = Stored::read(&entry.map(text).into());
        let stored = Stored { size: 3_000_000_000, etag: "0123-2".into(), written: 1_714_521_601 };
        assert_eq!(read, stored);
    }

    #[test]
    fn path_of_an_object_is_encoded_as_signatures_need_it() {
        assert_eq!(path("a b/+ü'(~.js"), "/a%20b/%2B%C3%BC%27%28~.js");
    }

    #[test]
    fn upload_of_the_last_day_is_not_given_up() {
        let now = Timestamp::from_second(1_000_000).unwrap_or_default();
        let begun = |seconds_ago| Some(now - SignedDuration::from_secs(seconds_ago));
        assert!(!is_given_up(begun(0), now));
        assert!(!is_given_up(begun(86_400), now));
        assert!(is_given_up(begun(86_401), now));
        assert!(!is_given_up(None, now));
    }
}
