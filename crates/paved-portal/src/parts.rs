//! The parts of the portal that handlers extract.

use std::sync::Arc;

use axum::extract::FromRef;

use super::Portal;
use super::api::environments::Environments;
use super::api::kinds::Kinds;
use super::api::write::Writer;
use super::bodies::Bodies;
use super::clients::Clients;
use super::health::Health;
use super::limits::Limits;
use super::live::Feed;
use super::metrics::Metrics;
use super::namespace::Namespaces;
use super::sign_in::SignIn;
use super::signed_in::Callers;

impl FromRef<Portal> for Clients {
    fn from_ref(portal: &Portal) -> Self {
        portal.clients.clone()
    }
}

impl FromRef<Portal> for Limits {
    fn from_ref(portal: &Portal) -> Self {
        portal.limits
    }
}

impl FromRef<Portal> for Namespaces {
    fn from_ref(portal: &Portal) -> Self {
        portal.namespaces.clone()
    }
}

impl FromRef<Portal> for Arc<Bodies> {
    fn from_ref(portal: &Portal) -> Self {
        Self::clone(&portal.bodies)
    }
}

impl FromRef<Portal> for Arc<Metrics> {
    fn from_ref(portal: &Portal) -> Self {
        Self::clone(&portal.metrics)
    }
}

impl FromRef<Portal> for Environments {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            clients: portal.clients.clone(),
            catalog: Arc::clone(&portal.catalog),
            access: Arc::clone(&portal.access),
            live: Arc::clone(&portal.live),
            composer: Arc::clone(&portal.composer),
            only: portal.only.clone(),
            limits: portal.limits,
        }
    }
}

impl FromRef<Portal> for Writer {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            environments: Environments::from_ref(portal),
            namespaces: portal.namespaces.clone(),
            naming: portal.naming.clone(),
        }
    }
}

impl FromRef<Portal> for Kinds {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            clients: portal.clients.clone(),
            catalog: Arc::clone(&portal.catalog),
            access: Arc::clone(&portal.access),
            namespaces: portal.namespaces.clone(),
            apis: portal.config.apis,
        }
    }
}

impl FromRef<Portal> for Feed {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            live: Arc::clone(&portal.live),
            streams: Arc::clone(&portal.streams),
            access: Arc::clone(&portal.access),
            catalog: Arc::clone(&portal.catalog),
            sessions: portal.sessions(),
            limits: portal.limits,
        }
    }
}

impl FromRef<Portal> for Callers {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            bearers: Arc::clone(&portal.bearers),
            sessions: portal.sessions(),
            acting: Arc::clone(&portal.acting),
            access: Arc::clone(&portal.access),
        }
    }
}

impl FromRef<Portal> for SignIn {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            oidc: portal.oidc.clone(),
            config: Arc::clone(&portal.config),
            public_url: portal.public_url.clone(),
            acting: Arc::clone(&portal.acting),
            access: Arc::clone(&portal.access),
            limits: portal.limits,
        }
    }
}

impl FromRef<Portal> for Health {
    fn from_ref(portal: &Portal) -> Self {
        Self {
            live: Arc::clone(&portal.live),
            catalog: Arc::clone(&portal.catalog),
            sessions: portal.sessions(),
            limits: portal.limits,
        }
    }
}
