//! Clients of the API server: the portal's own, and one for each user. All share the same
//! connections.

use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use kube::client::{Body, ClientBuilder};
use kube::config::AuthInfo;
use kube::{Client, Config};
use paved_client::cluster::Cluster;
use tower::service_fn;

use super::identity::{Credential, Person};
use super::problem::Problem;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// Connections to the API server, which all requests share.
#[derive(Clone)]
pub(super) struct Clients {
    /// With the portal's own credentials.
    own: Client,
    /// Without credentials, for users' own tokens.
    bare: Client,
    server: String,
    namespace: String,
}

impl Clients {
    /// Clients with the portal's own configuration.
    pub(super) fn new(cluster: &Cluster, config: Config) -> kube::Result<Self> {
        let mut bare = config;
        bare.auth_info = AuthInfo::default();
        Ok(Self {
            own: cluster.client.clone(),
            bare: ClientBuilder::try_from(bare)?.build(),
            server: cluster.server.clone(),
            namespace: cluster.namespace.clone(),
        })
    }

    /// The portal's own client.
    pub(super) fn own(&self) -> Cluster {
        self.cluster(self.own.clone())
    }

    /// Returns the client of a person.
    pub(super) fn for_person(&self, person: &Person) -> Result<Client, Problem> {
        self.by(person.credential(), person.username(), person.groups())
    }

    fn cluster(&self, client: Client) -> Cluster {
        Cluster {
            client,
            namespace: self.namespace.clone(),
            is_namespace_chosen: false,
            server: self.server.clone(),
        }
    }

    /// A client with a credential. The username and the groups are used for impersonation.
    pub(super) fn by(
        &self,
        credential: &Credential,
        username: &str,
        groups: &[String],
    ) -> Result<Client, Problem> {
        let mut headers = HeaderMap::new();
        let client = match credential {
            Credential::Own => return Ok(self.own.clone()),
            Credential::Session { .. } => {
                headers.insert(USER, value(username)?);
                for group in groups {
                    headers.append(GROUP, value(group)?);
                }
                self.own.clone()
            }
            Credential::Bearer(token) => {
                let mut authorization = value(&format!("Bearer {}", token.secret()))?;
                authorization.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, authorization);
                self.bare.clone()
            }
        };
        let namespace = self.namespace.clone();
        let service = service_fn(move |mut request: Request<Body>| {
            let client = client.clone();
            // Earlier values are replaced, so that a request never impersonates two users.
            let named: Vec<HeaderName> = headers.keys().cloned().collect();
            for name in named {
                request.headers_mut().remove(&name);
            }
            request.headers_mut().extend(headers.clone());
            async move { client.send(request).await }
        });
        Ok(Client::new(service, namespace))
    }
}

fn value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        Problem::unauthorized(
            "The name of the user or of a group has invalid \
             characters.",
        )
    })
}
