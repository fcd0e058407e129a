//! Failures of the crates that use a cluster.

use function_paved_road::error::FieldError;
use k8s_schema::Violation;
use paved_client::wait::Ending;

use super::Failure;

impl From<paved_client::Failure> for Failure {
    fn from(failure: paved_client::Failure) -> Self {
        use paved_client::Failure as Client;
        match failure {
            Client::Usage(message) => Self::Usage(message),
            Client::Refused { what, violations } => {
                let violations = violations.into_iter();
                let violation =
                    |field: FieldError| Violation { path: field.path, message: field.message };
                Self::Refused { what, violations: violations.map(violation).collect() }
            }
            Client::Absent(message) => Self::Absent(message),
            Client::Declined { what, message } => Self::Declined { what, message },
            Client::NoAccess { message, check } => Self::NoAccess { message, check },
        }
    }
}

impl From<paved_portal::Failure> for Failure {
    fn from(failure: paved_portal::Failure) -> Self {
        match failure {
            paved_portal::Failure::Usage(message) => Self::Usage(message),
            paved_portal::Failure::Cluster(failure) => failure.into(),
            paved_portal::Failure::Listener(error) => Self::Output(error),
        }
    }
}

impl From<paved_controller::Failure> for Failure {
    fn from(failure: paved_controller::Failure) -> Self {
        match failure {
            paved_controller::Failure::Usage(message) => Self::Usage(message),
            paved_controller::Failure::Cluster(failure) => failure.into(),
        }
    }
}

impl From<&Ending> for Failure {
    fn from(ending: &Ending) -> Self {
        match ending.clone() {
            Ending::Invalid { what, message } => Self::Fatal { what, message },
            Ending::Provisioning { what, message } => Self::Provisioning { what, message },
            Ending::NoCapacity { what, message } => Self::NoCapacity { what, message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_client_keep_their_text_and_have_a_code() {
        use paved_client::Failure as Client;
        let text = |text: &str| text.to_owned();
        let field = FieldError { path: text("spec.size"), message: text("too small") };
        for (failure, code) in [
            (Client::Usage(text("a")), 1),
            (Client::Absent(text("a")), 1),
            (Client::Refused { what: text("a"), violations: vec![field] }, 2),
            (Client::Declined { what: text("a"), message: text("b") }, 2),
            (Client::NoAccess { message: text("a"), check: text("b") }, 6),
        ] {
            let told = failure.to_string();
            let failure = Failure::from(failure);
            assert_eq!((failure.to_string(), failure.code()), (told, code));
        }
    }
}
