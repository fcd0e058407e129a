//! The pages. A build embeds pages that were built before. Without them, the rest of the portal
//! works, and a text describes how to build them.

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::{Embed, EmbeddedFile};

use super::problem::Problem;

/// The output of `npm run build`. A debug build reads the folder for each request, so it shows the
/// latest output. A release build embeds the output at its build time.
#[derive(Embed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Built;

/// The page for all paths.
const PAGE: &str = "index.html";

/// The folder of files with a hash in their names.
const HASHED: &str = "assets/";

/// The text that is shown without pages.
const WITHOUT: &str = "\
<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>Paved Road</title></head>
<body>
<h1>Paved Road</h1>
<p>This portal was built without its pages. Everything else works: the API is described at
<a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a>.</p>
<p>To have the pages, build them first: <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>, then build the portal again.</p>
</body>
</html>
";

/// All paths outside of the API.
pub(super) async fn serve(method: Method, uri: axum::http::Uri, headers: HeaderMap) -> Response {
    answer::<Built>(&method, uri.path(), &headers)
}

/// The page that shows an error to a user. `None` without pages.
pub(super) fn telling(problem: &Problem) -> Option<Response> {
    told::<Built>(problem)
}

fn told<Pages: Embed>(problem: &Problem) -> Option<Response> {
    let page = String::from_utf8(Pages::get(PAGE)?.data.into_owned()).ok()?;
    // The text cannot close the script element.
    let problem_text = serde_json::to_string(problem).ok()?.replace('<', "\\u003c");
    let data =
        format!("<script type=\"application/json\" id=\"problem\">{problem_text}</script></head>");
    let page = page.replacen("</head>", &data, 1);
    let uncached = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Some((problem.status(), uncached, Html(page)).into_response())
}

fn answer<Pages: Embed>(method: &Method, path: &str, headers: &HeaderMap) -> Response {
    let is_api = ["/api", "/ws", "/auth"].iter().any(|part| {
        path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_api || !matches!(*method, Method::GET | Method::HEAD) {
        return Problem::not_found("Page not found.").into_response();
    }
    let name = path.strip_prefix('/').unwrap_or_default();
    // Only listed files count: a name can point outside of the folder.
    if let Some(found) = Pages::iter().find(|one| one == name).and_then(|name| Pages::get(&name)) {
        return file(name, found, headers);
    }
    if name.starts_with(HASHED) {
        return Problem::not_found("File not found.").into_response();
    }
    // Pages choose their content by the path, and a name in the path may have a dot.
    Pages::get(PAGE).map_or_else(|| Html(WITHOUT).into_response(), |page| file(PAGE, page, headers))
}

/// A file. A client that has this state gets 304.
fn file(name: &str, found: EmbeddedFile, asked: &HeaderMap) -> Response {
    let cached =
        if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    // A weak tag, because the file may be sent compressed or not.
    let tag = format!("W/\"{}\"", URL_SAFE_NO_PAD.encode(&found.metadata.sha256_hash()[..16]));
    let mut response = if has(asked, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let media_type = media_type(found.metadata.mimetype());
        ([(header::CONTENT_TYPE, media_type)], found.data).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cached));
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
    response
}

/// Whether the client already has this state.
fn has(asked: &HeaderMap, tag: &str) -> bool {
    let strong = tag.trim_start_matches("W/");
    let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.trim_start_matches("W/") == strong)
}

fn media_type(guessed: &str) -> String {
    if guessed.starts_with("text/") {
        format!("{guessed}; charset=utf-8")
    } else {
        guessed.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http_body_util::BodyExt;

    use super::*;

    /// Sample pages.
    #[derive(Embed)]
    #[folder = "tests/pages"]
    struct Present;

    /// No pages.
    #[derive(Embed)]
    #[folder = "tests/no-pages"]
    #[allow_missing = true]
    struct NotFound;

    const SCRIPT: &str = "/assets/index-0a1b2c3d.js";

    fn get<Pages: Embed>(path: &str) -> Response {
        answer::<Pages>(&Method::GET, path, &HeaderMap::new())
    }

    fn header<'r>(response: &'r Response, name: &str) -> &'r str {
        response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    async fn body(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec())
            .unwrap()
    }

    #[tokio::test]
    async fn every_path_except_files_and_the_api_returns_the_page() {
        for path in
            ["/", "/index.html", "/environments/team/stockpools.platform.acme.io/a.b", "/x.js"]
        {
            let page = get::<Present>(path);
            assert_eq!(
                (page.status(), header(&page, "content-type"), header(&page, "cache-control")),
                (StatusCode::OK, "text/html; charset=utf-8", "no-cache"),
                "{path}"
            );
            assert!(body(page).await.contains("<title>A page</title>"), "{path}");
        }
        let icon = get::<Present>("/favicon.svg");
        assert_eq!(
            (header(&icon, "content-type"), header(&icon, "cache-control")),
            ("image/svg+xml", "no-cache")
        );
        for path in
            ["/assets/old-0a1b2c3d.js", "/assets/", "/api/v1/nothing", "/auth", "/ws/x.html"]
        {
            assert_eq!(get::<Present>(path).status(), StatusCode::NOT_FOUND, "{path}");
        }
        let post = answer::<Present>(&Method::POST, "/", &HeaderMap::new());
        assert_eq!(post.status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn names_out_of_the_pages_return_no_file() {
        for path in [
            "//etc/mtab",
            "/../main.rs",
            "/assets/../../main.rs",
            "/%2e%2e/main.rs",
            "/./favicon.svg",
        ] {
            let answer = get::<Present>(path);
            let page =
                answer.status() == 404 || body(answer).await.contains("<title>A page</title>");
            assert!(page, "{path}");
        }
    }

    #[test]
    fn hashed_file_is_immutable_and_other_files_are_revalidated() {
        let script = get::<Present>(SCRIPT);
        assert_eq!(header(&script, "content-type"), "text/javascript; charset=utf-8");
        assert_eq!(header(&script, "cache-control"), "public, max-age=31536000, immutable");
        let tag = header(&get::<Present>("/"), "etag").to_owned();
        assert!(tag.starts_with("W/\"") && tag != header(&script, "etag"), "{tag}");
        for (known, status) in [
            (tag.as_str(), 304),
            (tag.trim_start_matches("W/"), 304),
            (format!("\"a\", {tag}").as_str(), 304),
            ("*", 304),
            ("\"a\"", 200),
        ] {
            let asked = HeaderMap::from_iter([(header::IF_NONE_MATCH, known.parse().unwrap())]);
            let answer = answer::<Present>(&Method::GET, "/environments", &asked);
            assert_eq!(answer.status(), status, "{known}");
            assert_eq!(
                (header(&answer, "etag"), header(&answer, "cache-control")),
                (tag.as_str(), "no-cache")
            );
        }
    }

    #[tokio::test]
    async fn error_page_has_the_problem_without_its_markup() {
        let problem = Problem::forbidden("It says </script><script>alert(1)</script>.")
            .at("/auth/callback", "0a");
        let told = told::<Present>(&problem).unwrap();
        assert_eq!(
            (told.status(), header(&told, "cache-control")),
            (StatusCode::FORBIDDEN, "no-store")
        );
        let page = body(told).await;
        let (_, data) =
            page.split_once("<script type=\"application/json\" id=\"problem\">").unwrap();
        let (data, rest) = data.split_once("</script>").unwrap();
        assert!(!rest.contains("alert"), "{page}");
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["detail"], "It says </script><script>alert(1)</script>.");
        assert!(super::told::<NotFound>(&problem).is_none());
    }

    #[tokio::test]
    async fn missing_pages_are_answered_with_the_build_command() {
        let answer = get::<NotFound>("/environments/team/ada");
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(body(answer).await.contains("npm run build"));
        assert_eq!(get::<NotFound>(SCRIPT).status(), StatusCode::NOT_FOUND);
    }
}
