//! Certificates as Crossplane creates them: a CA, a server certificate and a client certificate.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tempfile::TempDir;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// The name in the server's certificate.
const SERVER: &str = "function.test";

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The directory for TLS_SERVER_CERTS_DIR.
    pub fn server_directory(&self) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = self.sign(ExtendedKeyUsagePurpose::ServerAuth);
        for (name, pem) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", self.pem())] {
            std::fs::write(directory.path().join(name), pem).unwrap();
        }
        directory
    }

    /// The configuration of a client that trusts this authority and has no certificate.
    pub fn trusting(&self) -> ClientTlsConfig {
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(self.pem())).domain_name(SERVER)
    }

    /// A client's certificate and key.
    pub fn client(&self) -> Identity {
        let (certificate, key) = self.sign(ExtendedKeyUsagePurpose::ClientAuth);
        Identity::from_pem(certificate, key)
    }

    /// The key of another certificate.
    pub fn other_key(&self) -> String {
        self.sign(ExtendedKeyUsagePurpose::ServerAuth).1
    }

    fn sign(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([SERVER.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    fn pem(&self) -> String {
        self.0.as_ref().pem()
    }
}
