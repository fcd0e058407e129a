//! The pages. A build embeds them where they were built before; without them everything else works, and this says how to have them.

use axum::http::{Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};

use super::problem::Problem;

/// What is shown where no pages were built.
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

/// Whatever is no part of the API.
pub(super) async fn serve(method: Method, uri: Uri) -> Response {
    let is_api = ["/api", "/ws", "/auth"].iter().any(|part| {
        uri.path().strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_api || !matches!(method, Method::GET | Method::HEAD) {
        return Problem::not_found("There is nothing here.").into_response();
    }
    // Pages choose by the path what they show: all that is no file is the first page.
    let is_file = uri.path().rsplit('/').next().is_some_and(|name| name.contains('.'));
    if is_file {
        return Problem::not_found("There is no such file.").into_response();
    }
    (StatusCode::OK, Html(WITHOUT)).into_response()
}
