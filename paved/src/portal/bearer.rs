//! Tokens of Kubernetes: whose they are is asked from the API server under the token itself, which takes no right of the portal's.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::PostParams;
use sha2::{Digest, Sha256};

use super::access::answered;
use super::answers::Answers;
use super::clients::Clients;
use super::problem::Problem;
use super::who::{Credential, Naming, Person, Token};
use crate::cluster::Api;

/// How long an answer counts: a token that is taken back goes on for so long, as far as what it sees is concerned. Writes are
/// made with the token itself.
const TTL: Duration = Duration::from_secs(30);

/// How many answers are kept.
const MANY: usize = 4096;

/// Whose tokens are whose.
pub(super) struct Bearers {
    clients: Clients,
    naming: Naming,
    /// By the hash of a token.
    known: Answers<[u8; 32], Arc<Person>>,
}

impl Bearers {
    pub(super) fn new(clients: Clients, naming: Naming) -> Self {
        Self { clients, naming, known: Answers::new(TTL, MANY) }
    }

    /// Whose token it is.
    pub(super) async fn person(&self, token: &Token) -> Result<Arc<Person>, Problem> {
        self.review(Credential::Bearer(token.clone()), token.secret()).await
    }

    /// The kubeconfig's own user.
    pub(super) async fn own(&self) -> Result<Arc<Person>, Problem> {
        self.review(Credential::Own, "").await
    }

    async fn review(&self, credential: Credential, secret: &str) -> Result<Arc<Person>, Problem> {
        let key: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let review = async {
            let client = self.clients.by(&credential, "", &[])?;
            ask(client, &self.naming, credential.clone()).await.map(Arc::new)
        };
        self.known.of(&key, review).await
    }
}

async fn ask(client: Client, naming: &Naming, credential: Credential) -> Result<Person, Problem> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let (params, review) = (PostParams::default(), SelfSubjectReview::default());
    let answer = answered(reviews.create(&params, &review)).await.map_err(|problem| {
        if problem.status() == 401 {
            return Problem::unauthorized("The Kubernetes API does not take this token.");
        }
        problem
    })?;
    let user = answer.status.and_then(|status| status.user_info).unwrap_or_default();
    let username = user.username.filter(|name| !name.is_empty() && name != "system:anonymous");
    let username = username
        .ok_or_else(|| Problem::unauthorized("The Kubernetes API does not say whose token it is."))?;
    let mut groups = user.groups.unwrap_or_default();
    groups.sort_unstable();
    Ok(Person::of_kubernetes(naming, &username, groups, credential))
}
