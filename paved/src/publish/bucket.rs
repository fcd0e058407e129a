//! The bucket: what is in it, and what changes it.

use std::collections::BTreeMap;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::{ByteStream, DateTime};
use aws_sdk_s3::types::{
    CompletedMultipartUpload, CompletedPart, Delete, EncodingType, ObjectIdentifier,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};

use super::account::Account;
use super::headers::Headers;
use super::parts::Sum;
use super::shown;
use super::trouble::{answered, explain, failed};
use crate::failure::Failure;

/// An upload in parts that is older was given up by whoever began it: until it is aborted its parts
/// are stored, and billed.
const GIVEN_UP: SignedDuration = SignedDuration::from_hours(24);

/// A bucket, in somebody's hands.
pub(super) struct Bucket {
    client: Client,
    name: String,
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    /// In bytes.
    pub(super) size: u64,
    pub(super) etag: String,
    /// When it was written, in seconds.
    pub(super) written: i64,
}

impl Bucket {
    pub(super) fn new(account: &Account, name: &str) -> Self {
        Self { client: account.s3(), name: name.to_owned() }
    }

    fn act(&self, act: &str, key: &str) -> String {
        format!("{act} {} in bucket {}", shown(key), self.name)
    }

    /// Everything that is there, by key.
    pub(super) async fn list(&self) -> Result<BTreeMap<String, Stored>, Failure> {
        let mut stored = BTreeMap::new();
        // XML cannot hold every character of a key.
        let list =
            self.client.list_objects_v2().bucket(&self.name).encoding_type(EncodingType::Url);
        let mut pages = list.into_paginator().send();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| explain(&error, &format!("list bucket {}", self.name)))?;
            let is_encoded = page.encoding_type == Some(EncodingType::Url);
            for object in page.contents.unwrap_or_default() {
                let etag = object.e_tag().unwrap_or_default().trim_matches('"').to_owned();
                let size =
                    object.size().and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
                let written = object.last_modified().map_or(0, DateTime::secs);
                let key = object.key.map(|key| if is_encoded { decoded(&key) } else { key });
                stored.extend(key.map(|key| (key, Stored { size, etag, written })));
            }
        }
        Ok(stored)
    }

    /// Uploads a file in one.
    pub(super) async fn put(
        &self,
        key: &str,
        headers: &Headers,
        body: ByteStream,
        sum: Sum,
    ) -> Result<(), Failure> {
        let request = self.client.put_object().bucket(&self.name).key(key);
        let request =
            request.content_type(&headers.content_type).cache_control(headers.cache_control);
        let sent = request.content_md5(BASE64_STANDARD.encode(sum)).body(body).send().await;
        sent.map(drop).map_err(|error| explain(&error, &self.act("upload", key)))
    }

    /// Begins an upload in parts; gives its id.
    pub(super) async fn begin(&self, key: &str, headers: &Headers) -> Result<String, Failure> {
        let request = self.client.create_multipart_upload().bucket(&self.name).key(key);
        let request =
            request.content_type(&headers.content_type).cache_control(headers.cache_control);
        let act = self.act("upload", key);
        let begun = request.send().await.map_err(|error| explain(&error, &act))?;
        begun.upload_id.ok_or_else(|| failed(&act, "the server gave the upload no id"))
    }

    /// Uploads a part.
    pub(super) async fn part(
        &self,
        key: &str,
        upload: &str,
        number: i32,
        body: ByteStream,
        sum: Sum,
    ) -> Result<CompletedPart, Failure> {
        let request = self.client.upload_part().bucket(&self.name).key(key).upload_id(upload);
        let request =
            request.part_number(number).content_md5(BASE64_STANDARD.encode(sum)).body(body);
        let sent =
            request.send().await.map_err(|error| explain(&error, &self.act("upload", key)))?;
        Ok(CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag).build())
    }

    /// Makes an object of the parts, which are in their order.
    pub(super) async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: Vec<CompletedPart>,
    ) -> Result<(), Failure> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let request =
            self.client.complete_multipart_upload().bucket(&self.name).key(key).upload_id(upload);
        let sent = request.multipart_upload(parts).send().await;
        sent.map(drop).map_err(|error| explain(&error, &self.act("upload", key)))
    }

    /// Gives up an upload in parts. That this fails is no news: what failed before it is.
    pub(super) async fn abort(&self, key: &str, upload: &str) {
        let request =
            self.client.abort_multipart_upload().bucket(&self.name).key(key).upload_id(upload);
        _ = request.send().await;
    }

    /// Aborts what runs that were killed have left, as far as the caller may: some of them.
    pub(super) async fn clean_up(&self) {
        let listed = self.client.list_multipart_uploads().bucket(&self.name).send().await;
        for upload in listed.ok().and_then(|listed| listed.uploads).unwrap_or_default() {
            let begun = upload.initiated.as_ref();
            if let (Some(key), Some(id), true) =
                (&upload.key, &upload.upload_id, is_given_up(begun, Timestamp::now()))
            {
                self.abort(key, id).await;
            }
        }
    }

    /// Deletes objects.
    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), Failure> {
        /// S3 takes that many at once.
        const AT_ONCE: usize = 1000;
        let act = |key: &str| self.act("delete", key);
        for some in keys.chunks(AT_ONCE) {
            let first = some.first().map_or("", String::as_str);
            let wrong = |error: &dyn std::error::Error| failed(&act(first), &error.to_string());
            let objects = some.iter().map(|key| ObjectIdentifier::builder().key(key).build());
            let objects = objects.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
            let batch = Delete::builder().set_objects(Some(objects)).quiet(true).build();
            let batch = batch.map_err(|error| wrong(&error))?;
            let sent = self.client.delete_objects().bucket(&self.name).delete(batch).send().await;
            let answer = sent.map_err(|error| explain(&error, &act(first)))?;
            if let Some(refused) = answer.errors().first() {
                let code = refused.code().unwrap_or_default();
                let status = if code == "AccessDenied" { 403 } else { 400 };
                let key = refused.key().unwrap_or_default();
                return Err(answered(
                    status,
                    code,
                    refused.message().unwrap_or_default(),
                    &act(key),
                ));
            }
        }
        Ok(())
    }
}

/// A key as a list of objects encodes it for a URL.
fn decoded(key: &str) -> String {
    // `&` and `=` are encoded: there is one pair.
    url::form_urlencoded::parse(key.as_bytes())
        .map(|(key, _)| key.into_owned())
        .next()
        .unwrap_or_default()
}

fn is_given_up(begun: Option<&DateTime>, now: Timestamp) -> bool {
    begun.is_some_and(|begun| now.as_second().saturating_sub(begun.secs()) > GIVEN_UP.as_secs())
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
    fn recent_upload_of_another_user_stays() {
        let now = Timestamp::from_second(1_000_000).unwrap_or_default();
        let begun = |seconds_ago: i64| DateTime::from_secs(1_000_000 - seconds_ago);
        assert!(!is_given_up(Some(&begun(0)), now));
        assert!(!is_given_up(Some(&begun(86_400)), now));
        assert!(is_given_up(Some(&begun(86_401)), now));
        assert!(!is_given_up(None, now));
    }
}
