//! `paved publish` against an S3 API, with an environment from a Kubernetes API.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use support::kubernetes::{Cluster, ready, waiting};
use support::s3::{BUCKET, S3};
use support::site::{asset, environment, site, write};
use tokio::process::{Child, Command};
use tokio::time::sleep;

async fn cluster() -> Cluster {
    Cluster::with(environment(&json!({})), &[]).await
}

/// The result of a run.
#[derive(Debug)]
struct Ran {
    code: i32,
    told: String,
    /// The peak memory, in KiB.
    peak: u64,
}

impl Ran {
    fn is(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{}", self.told);
        for word in words {
            assert!(self.told.contains(word), "{word:?} is missing: {}", self.told);
        }
        self
    }
}

fn start(cluster: &Cluster, s3: &S3, folder: &Path, flags: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
    command
        .arg("publish")
        .arg(folder)
        .arg("shop")
        .args(flags)
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig());
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_"))
    {
        command.env_remove(name);
    }
    command
        .envs([
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_ENDPOINT_URL", &s3.url),
        ])
        .envs([("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")])
        .env("AWS_EC2_METADATA_DISABLED", "true");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

async fn end(child: Child) -> Ran {
    let status = format!("/proc/{}/status", child.id().unwrap());
    let watched = tokio::spawn(async move {
        let mut peak = 0;
        while let Ok(status) = fs::read_to_string(&status) {
            let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let Some(high) = high else { break };
            peak = high.trim().trim_end_matches(" kB").parse().unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        peak
    });
    let output = child.wait_with_output().await.unwrap();
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    Ran { code: output.status.code().unwrap(), told, peak: watched.await.unwrap() }
}

async fn publish(cluster: &Cluster, s3: &S3, folder: &Path, flags: &[&str]) -> Ran {
    end(start(cluster, s3, folder, flags)).await
}

/// The uploaded keys, in the order of arrival.
fn uploaded(requests: &[String]) -> Vec<&str> {
    let put = format!("PUT /{BUCKET}/");
    let keys = requests.iter().filter_map(|line| line.strip_prefix(put.as_str()));
    keys.filter_map(|key| key.split('?').next()).collect()
}

fn changing(requests: &[String]) -> Vec<&String> {
    requests.iter().filter(|line| !line.starts_with("GET ") && !line.starts_with("HEAD ")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_a_site_deletes_none() {
    let (s3, cluster, site) = (S3::start().await, cluster().await, site(6));
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &["6 uploaded"]);
    let other = tempfile::tempdir().unwrap();
    write(&other, "app.js", "//");
    publish(&cluster, &s3, other.path(), &["--delete"]).await.is(1, &["has no index.html"]);
    assert_eq!(s3.keys().await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_with_a_control_character_does_not_stop_a_publish() {
    let (s3, cluster, site) = (S3::start().await, cluster().await, site(6));
    s3.ask("PUT", "s3", &format!("/{BUCKET}/old%01%2B%20%26.js"), "x").await;
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &["6 uploaded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn site_is_uploaded_once_with_its_pages_last() {
    // More files than S3 lists in one page.
    let (s3, cluster, site) = (S3::with_pages_of(100).await, cluster().await, site(150));

    publish(&cluster, &s3, site.path(), &["--dry-run"]).await.is(
        0,
        &["would upload index.html  3 B, text/html; charset=utf-8, no-cache", "150 to upload"],
    );
    assert_eq!(changing(&s3.requests()), Vec::<&String>::new(), "a dry run changes nothing");

    publish(&cluster, &s3, site.path(), &[]).await.is(
        0,
        &[
            "EnvironmentClaim team/shop: 150 uploaded",
            "0 unchanged",
            "https://d111111abcdef8.cloudfront.net",
        ],
    );
    let requests = s3.requests();
    let order = uploaded(&requests);
    assert_eq!(order.len(), 150);
    assert!(order[..146].iter().all(|key| key.starts_with("assets/")), "assets come first");
    assert_eq!(order[146], "site.css");
    assert_eq!(
        BTreeSet::from_iter(&order[147..149]),
        BTreeSet::from_iter(&["index.html", "sub/index.html"])
    );
    assert_eq!(order[149], "sw.js");
    assert_eq!(s3.keys().await.len(), 150);

    let forever = "public, max-age=31536000, immutable";
    for (key, content_type, cache_control) in [
        (asset(77).as_str(), "text/javascript; charset=utf-8", forever),
        ("index.html", "text/html; charset=utf-8", "no-cache"),
        ("site.css", "text/css; charset=utf-8", "no-cache"),
    ] {
        let head = s3.head(key).await;
        assert_eq!(head["content-type"], content_type, "{key}");
        assert_eq!(head["cache-control"], cache_control, "{key}");
    }

    s3.requests();
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &["0 uploaded (0 B), 150 unchanged"]);
    assert_eq!(changing(&s3.requests()), Vec::<&String>::new(), "nothing has changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_changed_files_are_uploaded_and_stale_files_go_last() {
    let (s3, cluster, site) = (S3::start().await, cluster().await, site(50));
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &["50 uploaded"]);
    s3.requests();

    write(&site, "index.html", "<a>");
    write(&site, "assets/new-0123abcd.js", "new");
    fs::remove_file(site.path().join(asset(7))).unwrap();
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(0, &["2 uploaded", "48 unchanged", "1 stale"]);
    assert_eq!(uploaded(&s3.requests()), ["assets/new-0123abcd.js", "index.html"]);
    assert!(s3.keys().await.contains(&asset(7)), "stale files are kept by default");

    write(&site, "index.html", "<b>");
    publish(&cluster, &s3, site.path(), &["--delete", "--dry-run"])
        .await
        .is(0, &["would delete assets/"]);
    publish(&cluster, &s3, site.path(), &["--delete"]).await.is(0, &["1 uploaded", "1 deleted"]);
    let requests = s3.requests();
    let changes = changing(&requests);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(
        changes[0].ends_with("/index.html")
            && changes[1].starts_with("POST")
            && changes[1].contains("delete")
    );
    assert_eq!(s3.keys().await.len(), 50);

    write(&site, &asset(8), "an asset that changes in place");
    let flags = ["--all", "--revalidate", "assets/**"];
    publish(&cluster, &s3, site.path(), &flags).await.is(0, &["50 uploaded"]);
    assert_eq!(s3.head(&asset(9)).await["cache-control"], "no-cache");
    write(&site, &asset(8), "once more, in place");
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(0, &["note: browsers cache these changed files for a year", &asset(8)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cache_invalidation_precedes_deletions() {
    let s3 = S3::start().await;
    let id = distribution(&s3).await;
    let cluster = Cluster::with(environment(&json!({"frontendDistributionId": id})), &[]).await;
    let site = site(10);
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &["10 uploaded"]);
    write(&site, "index.html", "<a>");
    fs::remove_file(site.path().join("site.css")).unwrap();
    s3.requests();
    publish(&cluster, &s3, site.path(), &["--delete"]).await.is(0, &["1 uploaded", "1 deleted"]);
    let requests = s3.requests();
    let told = format!("POST /2020-05-31/distribution/{id}/invalidation");
    let kinds: Vec<&str> =
        changing(&requests).into_iter().map(|line| line.split('?').next().unwrap()).collect();
    assert_eq!(
        kinds,
        [&format!("PUT /{BUCKET}/index.html"), &told, &format!("POST /{BUCKET}/"), &told],
        "{requests:?}"
    );
    let all = s3.ask("GET", "cloudfront", told.trim_start_matches("POST "), "").await;
    assert_eq!(all.texts("Quantity"), ["3"]);

    // After a run that ended before the invalidation, the next run has no uploads, but must
    // invalidate. S3 dates objects by the second.
    sleep(Duration::from_secs(1)).await;
    s3.refuse("POST", "/invalidation", 400, "InvalidArgument");
    write(&site, "index.html", "<i>");
    publish(&cluster, &s3, site.path(), &[]).await.is(4, &["Run the command again to retry"]);
    s3.allow();
    let runs: [(&[&str], usize); 3] = [(&[], 1), (&[], 0), (&["--invalidate"], 1)];
    for (flags, changes) in runs {
        s3.requests();
        publish(&cluster, &s3, site.path(), flags).await.is(0, &["0 uploaded"]);
        assert_eq!(changing(&s3.requests()), vec![&told; changes], "{flags:?}");
    }

    // After a deletion, the bucket does not show that the invalidation is missing.
    s3.refuse("POST", "/invalidation", 400, "InvalidArgument");
    fs::remove_file(site.path().join(asset(4))).unwrap();
    publish(&cluster, &s3, site.path(), &["--delete"])
        .await
        .is(4, &["are deleted", "again with --invalidate"]);
    assert!(!s3.keys().await.contains(&asset(4)));
    s3.allow();

    s3.refuse("POST", "/invalidation", 403, "AccessDenied");
    write(&site, "index.html", "<b>");
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(0, &["1 uploaded", "note: you may not invalidate"]);
}

/// Creates a distribution, and returns its ID.
async fn distribution(s3: &S3) -> String {
    let config = "<DistributionConfig><CallerReference>test</CallerReference><Comment/>\
        <Enabled>true</Enabled><Origins><Quantity>1</Quantity><Items><Origin><Id>bucket</Id>\
        <DomainName>b.s3.amazonaws.com</DomainName><S3OriginConfig><OriginAccessIdentity/>\
        </S3OriginConfig></Origin></Items></Origins><DefaultCacheBehavior>\
        <TargetOriginId>bucket</TargetOriginId>\
        <ViewerProtocolPolicy>redirect-to-https</ViewerProtocolPolicy></DefaultCacheBehavior>\
        </DistributionConfig>";
    let made = s3.ask("POST", "cloudfront", "/2020-05-31/distribution", config).await;
    made.texts("Id")[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_upload_is_resumed() {
    let (s3, cluster, site) = (S3::start().await, cluster().await, site(300));
    let film = fs::File::create(site.path().join("film-0123abcd.mp4")).unwrap();
    film.set_len(20 << 20).unwrap();

    s3.refuse("PUT", &asset(150), 400, "InvalidRequest");
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(4, &[&asset(150), "InvalidRequest: told so by the test"]);
    assert!(!s3.keys().await.contains(&"index.html".to_owned()), "no page before its assets");

    s3.refuse("PUT", "partNumber=2", 400, "InvalidRequest");
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(4, &["cannot upload film-0123abcd.mp4 in bucket acme"]);
    assert_eq!(s3.open_uploads().await, Vec::<String>::new());
    let there = s3.keys().await.len();
    assert!((1..300).contains(&there), "{there}");

    s3.allow();
    s3.requests();
    let rest = format!("{} uploaded", 301 - there);
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &[&rest, &format!("{there} unchanged")]);
    assert_eq!(s3.keys().await.len(), 301);
    publish(&cluster, &s3, site.path(), &[]).await.is(0, &["0 uploaded (0 B), 301 unchanged"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_file_takes_little_memory_and_ctrl_c_leaves_no_part() {
    // More than all parts that are uploaded at once, and twice the allowed memory.
    const SIZE: u64 = 144 << 20;
    let (s3, cluster, site) = (S3::start().await, cluster().await, site(10));
    let film = fs::File::create(site.path().join("film-0123abcd.mp4")).unwrap();
    film.set_len(SIZE).unwrap();

    let run = start(&cluster, &s3, site.path(), &[]);
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.contains("partNumber=3&")) {
        sleep(Duration::from_millis(20)).await;
        seen.extend(s3.requests());
    }
    let interrupted =
        Command::new("kill").args(["-INT", &run.id().unwrap().to_string()]).status().await;
    assert!(interrupted.unwrap().success());
    end(run).await.is(130, &["Run the command again"]);
    assert_eq!(s3.open_uploads().await, Vec::<String>::new());
    assert!(!s3.keys().await.contains(&"index.html".to_owned()));

    let ran = publish(&cluster, &s3, site.path(), &[]).await.is(0, &["144.00 MiB"]);
    println!("it takes {} KiB at most", ran.peak);
    assert!((1..=64 << 10).contains(&ran.peak), "{} KiB", ran.peak);
    assert_eq!(s3.head("film-0123abcd.mp4").await["content-length"], SIZE.to_string());
    let again =
        publish(&cluster, &s3, site.path(), &[]).await.is(0, &["0 uploaded (0 B), 11 unchanged"]);
    assert!((1..=64 << 10).contains(&again.peak), "{} KiB", again.peak);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_waited_for() {
    let (s3, site) = (S3::start().await, site(5));
    let made = environment(&json!({}));
    let cluster = Cluster::with(waiting(made.clone()), &[]).await;
    publish(&cluster, &s3, site.path(), &["--timeout", "1s"])
        .await
        .is(5, &["timed out", "is not ready"]);
    assert_eq!(s3.requests(), Vec::<String>::new());
    let before = cluster.asked().len();
    let run = start(&cluster, &s3, site.path(), &[]);
    cluster.is_watched(before).await;
    cluster.becomes(made);
    end(run).await.is(0, &["is ready after", "5 uploaded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_out_of_the_folder_are_rejected() {
    let (s3, cluster, site) = (S3::start().await, cluster().await, site(5));
    symlink("/etc/passwd", site.path().join("assets/passwd")).unwrap();
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(1, &["assets/passwd: is a broken link, or a link to a file outside the folder"]);
    assert_eq!(s3.requests(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn error_is_one_line_with_its_exit_code() {
    let (s3, site) = (S3::start().await, site(5));
    let pool = Cluster::with(ready("StockPool", json!({"replicas": 1}), json!({})), &[]).await;
    publish(&pool, &s3, site.path(), &[]).await.is(1, &["StockPool team/shop has no site"]);

    let cluster = cluster().await;
    publish(&cluster, &s3, &site.path().join("none"), &[])
        .await
        .is(1, &["could not read the folder"]);
    publish(&cluster, &s3, site.path(), &["--endpoint-url", "ftp://x"])
        .await
        .is(1, &["allowed: https://HOST"]);
    publish(&cluster, &s3, site.path(), &["--immutable", "a["]).await.is(1, &["a["]);
    publish(&cluster, &s3, site.path(), &["--endpoint-url", "http://127.0.0.1:1"])
        .await
        .is(6, &["no response"]);

    s3.refuse("GET", BUCKET, 403, "AccessDenied");
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(6, &["you may not list bucket", "publisherRoleArns"]);
    s3.refuse("PUT", "index.html", 403, "AccessDenied");
    publish(&cluster, &s3, site.path(), &[])
        .await
        .is(6, &["you may not upload", "index.html in bucket"]);
    s3.allow();

    let elsewhere =
        Cluster::with(environment(&json!({"frontendBucketName": "no-such-bucket"})), &[]).await;
    let ran = publish(&elsewhere, &s3, site.path(), &[])
        .await
        .is(4, &["cannot list bucket", "NoSuchBucket"]);
    assert_eq!(
        ran.told.lines().filter(|line| line.starts_with("error")).count(),
        1,
        "{}",
        ran.told
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials_are_reported_first() {
    let site = site(5);
    // The command also does not wait for the environment.
    for environment in [environment(&json!({})), waiting(environment(&json!({})))] {
        let cluster = Cluster::with(environment, &[]).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_paved"));
        command
            .arg("publish")
            .arg(site.path())
            .args(["shop", "--kubeconfig"])
            .arg(cluster.kubeconfig());
        command.env_clear().envs([("HOME", "/nonexistent"), ("AWS_EC2_METADATA_DISABLED", "true")]);
        let output = command.output().await.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(6), &b""[..]), "{told}");
        assert!(told.contains("no AWS credentials") && told.contains("aws sso login"), "{told}");
    }
}
