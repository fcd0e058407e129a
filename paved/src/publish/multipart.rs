//! Splits a file into parts, and computes its checksum in S3.
//!
//! S3's `ETag` of an object is the MD5 of its bytes. After a multipart upload, it is the MD5 of the
//! parts' MD5s, and their number. This is true for encryption with the server's own keys, as in the
//! buckets of environments. The bucket's list has the `ETag`, so a comparison needs only the right
//! to list.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use md5::{Digest, Md5};

/// The size of a part in bytes. A smaller file is uploaded in one request. The AWS CLI uses the
/// same size, so its uploads count as unchanged.
pub(super) const PART: u64 = 8 << 20;

/// S3's maximum number of parts.
const MOST_PARTS: u64 = 10_000;

/// The maximum size of a file, in bytes.
pub(super) const LARGEST: u64 = PART * MOST_PARTS;

/// An MD5.
pub(super) type Sum = [u8; 16];

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Counted from 1, as in S3.
    pub(super) number: i32,
    offset: u64,
    length: usize,
}

/// Splits a file of that size into parts. A file for a single request has one part.
pub(super) fn split(size: u64) -> Vec<Part> {
    let count = if is_whole(size) { 1 } else { size.div_ceil(PART) };
    let part = |index: u64| {
        let offset = index * PART;
        Some(Part {
            number: i32::try_from(index + 1).ok()?,
            offset,
            length: usize::try_from((size - offset).min(PART)).ok()?,
        })
    };
    (0..count).filter_map(part).collect()
}

/// Whether a file of that size is uploaded in one request.
pub(super) fn is_whole(size: u64) -> bool {
    size < PART
}

impl Part {
    /// The length in bytes.
    pub(super) fn bytes(self) -> u64 {
        self.length as u64
    }

    /// The request body. Each attempt reads the part from its start.
    pub(super) fn body(self, file: Arc<fs::File>) -> SdkBody {
        let begin =
            move || Chunks { file: Arc::clone(&file), offset: self.offset, left: self.length };
        SdkBody::retryable(move || SdkBody::from_body_1_x(begin()))
    }

    /// The checksum.
    pub(super) fn sum(self, file: &fs::File) -> io::Result<Sum> {
        let mut sum = Md5::new();
        let mut buffer = vec![0; CHUNK.min(self.length)];
        let mut done = 0;
        while done < self.length {
            let chunk = &mut buffer[..CHUNK.min(self.length - done)];
            file.read_exact_at(chunk, self.offset + done as u64).map_err(shorter)?;
            sum.update(&chunk);
            done += chunk.len();
        }
        Ok(sum.finalize().into())
    }
}

/// The bytes of a part that are in memory at the same time.
const CHUNK: usize = 128 << 10;

/// The request body of a part. The part was just read for its checksum, so its bytes come from the
/// system's cache without delay.
struct Chunks {
    file: Arc<fs::File>,
    offset: u64,
    left: usize,
}

impl Chunks {
    fn next(&mut self) -> io::Result<Frame<Bytes>> {
        let mut chunk = vec![0; CHUNK.min(self.left)];
        self.file.read_exact_at(&mut chunk, self.offset).map_err(shorter)?;
        self.left -= chunk.len();
        self.offset += chunk.len() as u64;
        Ok(Frame::data(chunk.into()))
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready((self.left > 0).then(|| self.next()))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

/// S3's `ETag` of a file with that size.
pub(super) fn etag(file: &fs::File, size: u64) -> io::Result<String> {
    let parts = split(size);
    let sums = parts.iter().map(|part| part.sum(file)).collect::<io::Result<Vec<Sum>>>()?;
    Ok(match sums.as_slice() {
        [only] if is_whole(size) => hexadecimal(*only),
        sums => format!("{}-{}", hexadecimal(Md5::digest(sums.concat()).into()), sums.len()),
    })
}

fn hexadecimal(sum: Sum) -> String {
    format!("{:032x}", u128::from_be_bytes(sum))
}

fn shorter(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::new(error.kind(), "changed during the upload");
    }
    error
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use http_body_util::BodyExt;

    use super::*;

    fn file(size: u64) -> fs::File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"paved").unwrap();
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn parts_are_the_whole_file() {
        for (size, count) in
            [(0, 1), (1, 1), (PART - 1, 1), (PART, 1), (PART + 1, 2), (3 * PART, 3)]
        {
            let parts = split(size);
            assert_eq!(parts.len(), count, "{size}");
            assert_eq!(parts.iter().map(|part| part.bytes()).sum::<u64>(), size);
        }
        assert_eq!(split(LARGEST).len(), 10_000);
    }

    #[test]
    fn checksums_are_as_s3_makes_them() {
        assert_eq!(etag(&file(0), 0).unwrap(), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(etag(&file(5), 5).unwrap(), "ea3a5881afb55ec285ac278f45d11836");
        let (size, file) = (PART + 1, file(PART + 1));
        let sums: Vec<u8> = split(size).iter().flat_map(|part| part.sum(&file).unwrap()).collect();
        let whole: Sum = Md5::digest(sums).into();
        assert_eq!(etag(&file, size).unwrap(), format!("{}-2", hexadecimal(whole)));
    }

    #[tokio::test]
    async fn a_body_is_its_part_of_the_file() {
        let (size, file) = (PART + 300_000, Arc::new(file(PART + 300_000)));
        file.write_all_at(b"end", size - 3).unwrap();
        let mut sent = Vec::new();
        for part in split(size) {
            sent.extend(part.body(Arc::clone(&file)).collect().await.unwrap().to_bytes());
        }
        assert_eq!(sent.len() as u64, size);
        assert!(sent.starts_with(b"paved") && sent.ends_with(b"end"));
        let beyond = Part { number: 1, offset: size - 1, length: 2 };
        assert!(beyond.body(file).collect().await.is_err());
    }

    #[test]
    fn shrunk_file_is_reported() {
        let told = etag(&file(5), 6).unwrap_err().to_string();
        assert_eq!(told, "changed during the upload");
    }
}
