//! Certificate authorities, the certificates of servers and clients, and secrets.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate, its key and its authority, as PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The authority's certificate.
    pub authority: String,
    /// The certificate.
    pub chain: String,
    /// Its key, PKCS #8.
    pub key: String,
}

impl Authority {
    /// Creates an authority.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// An existing authority, from its certificate and its key in PEM.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self> {
        let key = KeyPair::from_pem(key).context("the authority's key")?;
        let issuer =
            Issuer::from_ca_cert_pem(certificate, key).context("the authority's certificate")?;
        Ok(Self { issuer, pem: certificate.to_owned() })
    }

    /// The authority's own certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs a certificate for servers and clients, for DNS names and addresses.
    pub fn sign<S: Into<String>>(&self, names: impl IntoIterator<Item = S>) -> Result<Certificate> {
        let mut params =
            CertificateParams::new(names.into_iter().map(Into::into).collect::<Vec<_>>())?;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let chain = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Certificate { authority: self.pem.clone(), chain, key: key.serialize_pem() })
    }
}

impl Certificate {
    /// Writes the files of a Kubernetes Secret of type TLS: `ca.crt`, `tls.crt`, `tls.key`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("ca.crt"), &self.authority)?;
        fs::write(folder.join("tls.crt"), &self.chain)?;
        fs::write(folder.join("tls.key"), &self.key)?;
        Ok(())
    }
}

/// Writes the keys that sign the tokens of service accounts: `sa.key` and `sa.pub`.
pub fn token_keys(folder: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    fs::write(folder.join("sa.key"), key.serialize_pem())?;
    fs::write(folder.join("sa.pub"), key.public_key_pem())?;
    Ok(())
}

/// A random token or password. The standard library seeds its hash maps with random numbers.
pub fn secret() -> String {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", half(), half())
}
