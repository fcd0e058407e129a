// Finds the file of a path, before CloudFront searches its cache. It runs as a CloudFront Function
// with the runtime cloudfront-js-2.0. The composition function replaces the kind.
const kind = "app";

function handler(event) {
  const request = event.request;
  const path = request.uri;
  const last = path.slice(path.lastIndexOf("/") + 1);
  // Files below /.well-known/ have fixed names, some without a dot (RFC 8615).
  if (/^\/(assets|\.well-known)\//.test(path) || /\.|%2e/i.test(last)) {
    return request;
  }
  if (kind === "app") {
    request.uri = "/index.html";
    return request;
  }
  if (last === "") {
    request.uri = path + "index.html";
    return request;
  }
  // A location that begins with two slashes names another host. Browsers also read a backslash as
  // a slash, and ignore tabs and line ends.
  const location = "/" + path.replace(/^[/\\\x00-\x20]+/, "") + "/";
  const query = request.rawQueryString();
  return {
    statusCode: 302,
    statusDescription: "Found",
    headers: { location: { value: query == null ? location : location + "?" + query } },
  };
}
