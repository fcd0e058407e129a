//! Explains the cluster's errors, each in one line with advice.

use std::error::Error;
use std::iter::successors;

use crossplane::secrets::struck_from;
use crossplane::text::harmless;
use function_paved_road::error::FieldError;
use function_paved_road::patterns::plain;
use kube::client::AuthError;
use kube::core::Status;

use crate::Failure;

/// Advice for users without rights to our kinds.
pub const ASK: &str = "ask for the role paved-road-user (paved-road-user-GROUP for the kinds of a company's own group)";

/// Explains an error after the attempt to `act` on `server`.
pub fn explain(error: &kube::Error, server: &str, act: &str) -> Failure {
    if let Some(lacking) = no_credentials(error) {
        return Failure::NoAccess {
            message: format!("no credentials for {server}: {lacking}"),
            check: "that the kubeconfig's user is correct and logged in".to_owned(),
        };
    }
    match error {
        kube::Error::Api(status) => failure_from_status(status, server, act),
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            Failure::Usage(format!("cannot {act}: {}", innermost(error)))
        }
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Failure::NoAccess {
            message: format!("{server} does not respond like an API server: {}", innermost(error)),
            check: "the server's address in the kubeconfig, and proxies".to_owned(),
        },
        _ => unreachable(error, server),
    }
}

/// Explains a configuration that does not lead to a cluster.
pub(super) fn unusable(error: &kube::Error) -> Failure {
    Failure::NoAccess {
        message: format!("the kubeconfig is invalid: {}", innermost(error)),
        check: "its certificate-authority-data, client-certificate-data and client-key-data"
            .to_owned(),
    }
}

/// The problem with the caller's own credentials, if a request failed before it was sent.
/// Credentials are read when the client is created, and again when they expire.
pub(super) fn no_credentials(error: &kube::Error) -> Option<String> {
    let mut layers = successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    layers.find_map(|error| error.downcast_ref()).map(credentials)
}

/// The arguments and the output of a plugin may contain secrets, so the message must not show them.
fn credentials(error: &AuthError) -> String {
    const PLUGIN: &str = "the credential plugin in the kubeconfig";
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            match said.lines().rfind(|line| !line.trim().is_empty()) {
                Some(last) => format!("{PLUGIN} failed: {}", one_line(last)),
                // A plugin that may prompt at a terminal prints its errors there.
                None => format!("{PLUGIN} failed ({})", out.status),
            }
        }
        AuthError::AuthExecStart(error) => format!("{PLUGIN} could not start: {error}"),
        AuthError::AuthExecParse(_) => format!("{PLUGIN} printed no ExecCredential"),
        other => one_line(&other.to_string()),
    }
}

/// Whether the caller lacks the right. The object may exist or not.
pub fn is_denied(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if lacks_rights(status))
}

/// Whether a status is about missing rights. Quotas and admission reject with the same code.
pub fn lacks_rights(status: &Status) -> bool {
    status.code == 403
        && status.message.contains("User \"")
        && status.message.contains("\" cannot ")
}

fn failure_from_status(status: &Status, server: &str, act: &str) -> Failure {
    let message = plain(&one_line(&status.message));
    match status.code {
        401 => Failure::NoAccess {
            message: format!("{server} rejects your credentials"),
            check: "whether your token has expired, and log in again".to_owned(),
        },
        403 if lacks_rights(status) => Failure::NoAccess {
            message: format!("you may not {act}: {message}"),
            check: format!("-n and --context, or {ASK}"),
        },
        400 | 403 | 404 | 405 | 406 | 409 | 415 | 422 => {
            Failure::Declined { what: format!("to {act}"), message }
        }
        code => Failure::NoAccess {
            message: format!("{server} could not {act}: {code} {message}"),
            check: "the state of the cluster, and try again".to_owned(),
        },
    }
}

/// All the API server's objections to an object, one line for each field.
pub fn refusal(what: &str, status: &Status) -> Failure {
    // The message quotes the request, and a URL may contain a secret.
    let words = |message: &str| struck_from(&plain(&one_line(message)));
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut violations: Vec<FieldError> = causes
        .filter(|cause| !cause.message.is_empty())
        .map(|cause| FieldError { path: one_line(&cause.field), message: words(&cause.message) })
        .collect();
    if violations.is_empty() {
        violations.push(FieldError { path: String::new(), message: words(&status.message) });
    }
    Failure::Refused { what: what.to_owned(), violations }
}

fn unreachable(error: &kube::Error, server: &str) -> Failure {
    let cause = innermost(error);
    let check = if cause.contains("certificate")
        || cause.contains("Certificate")
        || cause.contains("UnknownIssuer")
    {
        "the kubeconfig's certificate-authority, and that this is the right cluster"
    } else if cause.contains("dns error")
        || cause.contains("lookup")
        || cause.contains("Name or service")
    {
        "the server's name in the kubeconfig, your network and VPN"
    } else {
        "--context, your network and VPN, and that the cluster runs"
    };
    Failure::NoAccess {
        message: format!("{server} does not respond: {cause}"),
        check: check.to_owned(),
    }
}

/// The innermost cause of an error. The outer layers repeat it or add no information.
fn innermost(error: &kube::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    one_line(&cause.to_string())
}

/// A message of a server or a program in one line, without harmful characters for a terminal.
pub fn one_line(text: &str) -> String {
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn api(status: serde_json::Value) -> kube::Error {
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn api_errors_have_advice() {
        for (code, no_access, part) in [
            (401, true, "log in again"),
            (403, false, "it is so"),
            (404, false, "it is so"),
            (422, false, "it is so"),
            (500, true, "try again"),
            (503, true, "try again"),
        ] {
            let failure =
                explain(&api(json!({"code": code, "message": "it\nis so"})), "https://c", "list X");
            assert_eq!(matches!(failure, Failure::NoAccess { .. }), no_access, "{code}");
            let told = failure.to_string();
            assert!(told.contains(part) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn missing_right_has_advice_and_other_403_errors_do_not() {
        let told = |message: &str| {
            let failure =
                explain(&api(json!({"code": 403, "message": message})), "https://c", "list X");
            (matches!(failure, Failure::NoAccess { .. }), failure.to_string())
        };
        let (no_access, text) =
            told(r#"x is forbidden: User "ada" cannot list resource "x" in the namespace "n""#);
        assert!(no_access && text.contains("paved-road-user"), "{text}");
        for refused in
            ["x is forbidden: exceeded quota: q", "admission webhook w denied the request: no"]
        {
            let (no_access, text) = told(refused);
            assert!(
                !no_access && text.contains(refused) && !text.contains("paved-road-user"),
                "{text}"
            );
        }
    }

    #[test]
    fn plugin_failure_shows_only_its_last_error_line() {
        let script = "echo token-on-stdout; echo first >&2; echo token has expired >&2; exit 1";
        let out = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
        let cmd = "aws --secret hunter2".to_owned();
        let failed = || AuthError::AuthExecRun { cmd: cmd.clone(), out: Box::new(out.clone()) };
        // Both at the start, and when previous credentials have expired.
        for failure in [kube::Error::Auth(failed()), kube::Error::Service(Box::new(failed()))] {
            let told = explain(&failure, "https://c", "list X").to_string();
            assert!(told.starts_with("no credentials for https://c: "), "{told}");
            assert!(told.contains("failed: token has expired"), "{told}");
            assert!(!told.contains("hunter2") && !told.contains("on-stdout"), "{told}");
        }
    }

    #[test]
    fn refused_connection_is_reported_with_advice() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let failure = explain(&kube::Error::Service(Box::new(refused)), "https://c:1", "list X");
        assert_eq!(
            failure.to_string(),
            "https://c:1 does not respond: connection refused; check --context, your network and VPN, \
             and that the cluster runs"
        );
    }

    #[test]
    fn a_refusal_has_a_line_for_each_field() {
        let status = serde_json::from_value(
            json!({"code": 422, "message": "all of it", "details": {"causes": [
                {"field": "spec.parameters.diskGB", "message": "should be\ngreater"},
                {"field": "spec.x", "message": ""},
            ]}}),
        )
        .unwrap();
        let Failure::Refused { violations, .. } = refusal("a.yaml: X a", &status) else { panic!() };
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].to_string(), "spec.parameters.diskGB: should be greater");
        let quoted = serde_json::from_value(
            json!({"code": 422, "message": "all of it", "details": {"causes": [
                {"field": "spec.gitops.repoURL", "message": "Invalid value: \"https://u:tok@h.org/a\": should match"},
            ]}}),
        );
        let Failure::Refused { violations, .. } = refusal("x", &quoted.unwrap()) else { panic!() };
        let told = violations[0].to_string();
        assert!(told.contains("\"https://…@h.org/a\": should match"), "{told}");
        let pattern = serde_json::from_value(json!({"code": 422, "message": "all", "details":
            {"causes": [{"field": "spec.lifecycle.ttl", "message": "Invalid value: \"8\": \
                spec.lifecycle.ttl in body should match '^([1-9][0-9]{0,4}[smhdw]|never)$'"}]}}));
        let Failure::Refused { violations, .. } = refusal("x", &pattern.unwrap()) else { panic!() };
        let told = violations[0].to_string();
        assert!(
            told.ends_with(
                "in body should be a whole number with a unit (s, m, h, d or w), \
            for example 30m, 8h or 14d, or never"
            ),
            "{told}"
        );
        let bare = serde_json::from_value(json!({"code": 400, "message": "no"})).unwrap();
        let Failure::Refused { violations, .. } = refusal("x", &bare) else { panic!() };
        assert_eq!(violations, [FieldError { path: String::new(), message: "no".to_owned() }]);
    }
}
