//! The portal's surroundings: an API server, an OpenID provider, and clients.

pub mod api_server;
pub mod oidc;
pub mod portal;
