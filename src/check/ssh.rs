//! SSH public keys, in the format of a line of `authorized_keys`.

use ssh_key::PublicKey;
use ssh_key::public::{KeyData, RsaPublicKey};

use super::{Refused, is_invisible, quoted};

/// The allowed key types, by OpenSSH's names. DSA is broken, and OpenSSH has dropped it.
const TYPES: [&str; 7] = [
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// The allowed keys, for messages: the origin of the line and the key types.
const ALLOWED: &str = "one line as in ~/.ssh/id_ed25519.pub: a key type (ssh-ed25519, \
                       ecdsa-sha2-nistp256/384/521, ssh-rsa of \
                       2048 bits or more, sk-…), the key and an optional comment";

/// Texts that only private keys contain: PEM's and PuTTY's headers, and the first bytes of
/// OpenSSH's own format in base64.
const PRIVATE: [&str; 3] = ["PRIVATE KEY", "PuTTY-User-Key-File", "b3BlbnNzaC1rZXktdjE"];

/// Public keys in other formats: their header, the format's name, and the command of ssh-keygen
/// that converts them.
const OTHER_FORMATS: [(&str, &str, &str); 3] = [
    ("-----BEGIN PUBLIC KEY-----", "PEM", "ssh-keygen -i -m PKCS8 -f FILE"),
    ("-----BEGIN RSA PUBLIC KEY-----", "PEM (PKCS#1)", "ssh-keygen -i -m PEM -f FILE"),
    ("---- BEGIN SSH2 PUBLIC KEY ----", "RFC 4716", "ssh-keygen -i -f FILE"),
];

/// Bits of the shortest RSA key that is accepted, and of the longest RSA key that OpenSSH reads.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=16384;

/// Characters of the longest line that is accepted, including the comment.
pub const LONGEST_SSH_KEY: usize = 8192;

/// Exactly one public key in OpenSSH's one-line form. An error never shows text that could be a
/// private key.
pub fn ssh_public_key(line: &str) -> Result<PublicKey, Refused> {
    if PRIVATE.iter().any(|mark| line.contains(mark)) {
        return Err(refused(
            "a possible private key (not shown)",
            format!(
                "the public key from the .pub file. \
             Replace this private key, because it was sent to a server: {ALLOWED}"
            ),
        ));
    }
    if let Some((_, format, command)) =
        OTHER_FORMATS.iter().find(|(header, ..)| line.contains(header))
    {
        return Err(refused(
            format!("a public key in {format} format"),
            format!("the key in OpenSSH format, as printed by `{command}`: {ALLOWED}"),
        ));
    }
    if line.contains("-----BEGIN") {
        return Err(refused("a PEM text that is not a public key (not shown)", ALLOWED));
    }
    let count = line.chars().count();
    if count > LONGEST_SSH_KEY {
        return Err(refused(
            format!("{count} characters"),
            format!("at most {LONGEST_SSH_KEY}; {ALLOWED}"),
        ));
    }
    let line = ssh_key_line(line);
    let line = line.as_str();
    let kind = line.split(' ').next().unwrap_or_default();
    if line.chars().any(is_invisible) {
        let found =
            format!("{} with a line break or another invisible character", shown(line, kind));
        return Err(refused(found, format!("{ALLOWED}; one key per list item")));
    }
    if !TYPES.contains(&kind) {
        return Err(unknown_type(line, kind));
    }
    let key = PublicKey::from_openssh(line)
        .map_err(|_| refused(format!("{}, which is not a complete key", quoted(line)), ALLOWED))?;
    if let KeyData::Rsa(rsa) = key.key_data() {
        let bits = rsa_bits(rsa);
        if !RSA_BITS.contains(&bits) {
            return Err(refused(format!("an RSA key of {bits} bits"), ALLOWED));
        }
    }
    Ok(key)
}

/// The line of a key with one space between its fields. OpenSSH accepts any number of spaces and
/// tabs around and between the type, the key and the comment, and a line end.
pub fn ssh_key_line(line: &str) -> String {
    const BLANKS: [char; 2] = [' ', '\t'];
    let field = |text: &'_ str| -> (String, String) {
        let text = text.trim_start_matches(BLANKS);
        let (field, rest) = text.split_at(text.find(BLANKS).unwrap_or(text.len()));
        (field.to_owned(), rest.to_owned())
    };
    let line = line.trim_matches([' ', '\t', '\r', '\n']);
    let (kind, rest) = field(line);
    let (key, comment) = field(&rest);
    let comment = comment.trim_matches(BLANKS).replace('\t', " ");
    let fields = [kind, key, comment];
    fields.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(" ")
}

fn unknown_type(line: &str, kind: &str) -> Refused {
    let after_options = line.split(' ').skip(1).any(|word| TYPES.contains(&word));
    if after_options {
        refused("a key with options before its type", ALLOWED)
    } else if kind == "ssh-dss" {
        refused("a DSA key (ssh-dss), which is no longer secure", ALLOWED)
    } else {
        refused(
            format!("{}, which does not start with a known key type", shown(line, kind)),
            ALLOWED,
        )
    }
}

/// The first word, if it cannot be a piece of a secret. Names of key types are short and lowercase.
/// Base64 is neither.
fn shown(line: &str, kind: &str) -> String {
    let name_like = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-@._".contains(c);
    if !kind.is_empty() && kind.len() <= 40 && kind.chars().all(name_like) {
        quoted(kind)
    } else if line.is_empty() {
        "an empty text".to_owned()
    } else {
        format!("a text with {} characters (not shown)", line.chars().count())
    }
}

fn rsa_bits(key: &RsaPublicKey) -> usize {
    let modulus = key.n.as_positive_bytes().unwrap_or_default();
    let unused = modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    modulus.len() * 8 - unused
}

fn refused(found: impl Into<String>, allowed: impl Into<String>) -> Refused {
    Refused { found: found.into(), allowed: allowed.into() }
}
