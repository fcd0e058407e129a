//! Tokens of Kubernetes. The API server identifies the user of a token, in a request with the token
//! itself. The portal needs no right for this.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::PostParams;
use paved_client::cluster::Api;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access::answered;
use super::cache::TtlCache;
use super::clients::Clients;
use super::identity::{Credential, Naming, Person, Token};
use super::limits::Limits;
use super::problem::Problem;

/// The maximum number of concurrent token reviews. The senders may be unknown.
const CONCURRENCY: usize = 16;

/// The maximum number of cached answers.
const CACHE_CAPACITY: usize = 4096;

/// The users of tokens.
pub(super) struct TokenAuth {
    clients: Clients,
    naming: Naming,
    /// The users by the hash of a token.
    known: TtlCache<[u8; 32], Arc<Person>>,
    /// Tokens that the API server rejected, by their hash.
    rejected: TtlCache<[u8; 32], Problem>,
    open: Semaphore,
    /// Time limit for an answer, and for the wait before the request.
    patience: Duration,
}

impl TokenAuth {
    pub(super) fn new(clients: Clients, naming: Naming, limits: &Limits) -> Self {
        let patience = limits.api_answer;
        Self {
            clients,
            naming,
            known: TtlCache::new(limits.token, patience, CACHE_CAPACITY),
            rejected: TtlCache::new(limits.rejected_token, patience, CACHE_CAPACITY),
            open: Semaphore::new(CONCURRENCY),
            patience,
        }
    }

    /// The user of a token.
    pub(super) async fn person(&self, token: &Token) -> Result<Arc<Person>, Problem> {
        self.review(Credential::Bearer(token.clone()), token.secret()).await
    }

    /// The kubeconfig's own user.
    pub(super) async fn own(&self) -> Result<Arc<Person>, Problem> {
        self.review(Credential::Own, "").await
    }

    async fn review(&self, credential: Credential, secret: &str) -> Result<Arc<Person>, Problem> {
        let key: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        if let Some(problem) = self.rejected.known(&key) {
            return Err(problem);
        }
        let review = async {
            // A request that waited for another review of the same token gets the same answer.
            if let Some(problem) = self.rejected.known(&key) {
                return Err(problem);
            }
            let client = self.clients.by(&credential, "", &[])?;
            let turn = timeout(self.patience, self.open.acquire()).await;
            let _turn = turn.map_err(|_| Problem::silent())?;
            let answer = self.ask(client, credential.clone()).await.map(Arc::new);
            if let Err(problem) = answer.as_ref()
                && problem.status() == StatusCode::UNAUTHORIZED
            {
                self.rejected.keep(key, problem.clone());
            }
            answer
        };
        self.known.get_or_ask(&key, review).await
    }

    async fn ask(&self, client: Client, credential: Credential) -> Result<Person, Problem> {
        let reviews: Api<SelfSubjectReview> = Api::all(client);
        let (params, review) = (PostParams::default(), SelfSubjectReview::default());
        let answer =
            answered(self.patience, reviews.create(&params, &review)).await.map_err(|problem| {
                if problem.status() == 401 {
                    return Problem::unauthorized("The Kubernetes API rejects this token.");
                }
                problem
            })?;
        let user = answer.status.and_then(|status| status.user_info).unwrap_or_default();
        let username = user.username.filter(|name| !name.is_empty() && name != "system:anonymous");
        let username = username.ok_or_else(|| {
            Problem::unauthorized("The Kubernetes API returned no username for this token.")
        })?;
        let mut groups = user.groups.unwrap_or_default();
        groups.sort_unstable();
        Ok(Person::from_kubernetes(&self.naming, &username, groups, credential))
    }
}
