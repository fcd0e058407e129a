//! A site in the form of a bundler's output, and its environment.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::kubernetes::ready;
use super::s3::BUCKET;

/// An environment with a site. `status` adds status fields.
pub fn environment(status: &Value) -> Value {
    let mut all = json!({"frontendBucketName": BUCKET, "region": "us-east-1", "ready": true,
        "frontendUrl": "https://d111111abcdef8.cloudfront.net"});
    all.as_object_mut().unwrap().extend(status.as_object().cloned().unwrap_or_default());
    ready("EnvironmentClaim", json!({"frontend": {"appName": "shop"}}), all)
}

/// Writes a file of the site.
pub fn write(folder: &TempDir, key: &str, text: &str) {
    let path = folder.path().join(key);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A site in the form of a bundler's output, with this number of files. Most of them are assets.
pub fn site(files: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (key, text) in
        [("index.html", "<p>"), ("sub/index.html", "<p>sub"), ("sw.js", "//"), ("site.css", "p {}")]
    {
        write(&folder, key, text);
    }
    for number in 4..files {
        write(
            &folder,
            &asset(number),
            &format!("export default {number};\n").repeat(1 + number % 40),
        );
    }
    folder
}

/// The key of an asset.
pub fn asset(number: usize) -> String {
    format!("assets/part{}/chunk-{:08x}.js", number % 7, 0xa1b2_c300 + number)
}
