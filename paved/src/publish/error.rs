//! Explains AWS's errors in one line each, with the remediation.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::failure::Failure;
use crate::style::harmless;

/// Explains a failure to `act`, for example `upload index.html to bucket b`.
pub(super) fn explain<E>(error: &SdkError<E, HttpResponse>, act: &str) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let (code, message) = (answer.err().code().unwrap_or_default(), answer.err().message());
            answered(answer.raw().status().as_u16(), code, message.unwrap_or_default(), act)
        }
        SdkError::ConstructionFailure(_) => failed(act, &innermost(error)),
        SdkError::ResponseError(answer) => {
            let status = answer.raw().status();
            failed(act, &format!("the response ({status}) is not from S3: {}", innermost(error)))
        }
        _ => Failure::NoAccess {
            message: format!("could not {act}: no response: {}", innermost(error)),
            check: "--endpoint-url or $AWS_ENDPOINT_URL, your network and proxies".to_owned(),
        },
    }
}

/// The failure for missing credentials.
pub(super) fn no_credentials(error: &(dyn Error + 'static)) -> Failure {
    Failure::NoAccess {
        message: format!("no AWS credentials: {}", innermost(error)),
        check: "$AWS_PROFILE and `aws sso login`, AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, \
                or the role of this machine"
            .to_owned(),
    }
}

/// Explains a server's rejection: its status, error code and message.
pub(super) fn answered(status: u16, code: &str, message: &str, act: &str) -> Failure {
    let told = match (code, message) {
        ("", "") => format!("status {status}"),
        (code, "") => code.to_owned(),
        ("", message) => message.to_owned(),
        (code, message) => format!("{code}: {message}"),
    };
    let told = one_line(&told);
    let check = match code {
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" => {
            "whether your session has expired, and log in again, for example with `aws sso login`"
        }
        "RequestTimeTooSkewed" => "this machine's clock",
        "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "InvalidToken"
        | "InvalidClientTokenId" => {
            "that $AWS_PROFILE or $AWS_ACCESS_KEY_ID belongs to the environment's account"
        }
        _ if status == 401 || status == 403 => {
            "$AWS_PROFILE, and that your role is in the platform team's setting \
             unifiedEnvironment.publisherRoleArns"
        }
        _ => return failed(act, &told),
    };
    Failure::NoAccess { message: format!("you may not {act}: {told}"), check: check.to_owned() }
}

/// A failed action and its cause.
pub(super) fn failed(act: &str, why: &str) -> Failure {
    Failure::Provisioning { what: format!("cannot {act}:"), message: one_line(why) }
}

/// The innermost cause of an error. The outer errors only repeat it, or have no details.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    one_line(&cause.to_string())
}

fn one_line(text: &str) -> String {
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_its_exit_code_and_a_check() {
        for (status, code, exit, part) in [
            (403, "AccessDenied", 6, "publisherRoleArns"),
            (403, "InvalidAccessKeyId", 6, "$AWS_PROFILE"),
            (400, "ExpiredToken", 6, "log in again"),
            (403, "RequestTimeTooSkewed", 6, "clock"),
            (404, "NoSuchBucket", 4, "NoSuchBucket: it is so"),
            (500, "InternalError", 4, "InternalError"),
        ] {
            let failure = answered(status, code, "it\nis so", "list bucket b");
            assert_eq!(failure.code(), exit, "{code}");
            let told = failure.to_string();
            assert!(
                told.contains(part) && told.contains("list bucket b") && !told.contains('\n'),
                "{told}"
            );
        }
        assert!(answered(503, "", "", "x").to_string().contains("status 503"));
    }
}
