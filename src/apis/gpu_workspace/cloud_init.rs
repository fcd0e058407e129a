//! Cloud-init's user data: the setup of a workspace's machine at its first boot.
//!
//! The text depends only on the keys and the OpenCV release. No label, owner or lease changes it.
//! AWS stops and starts a machine if its user data changes, and cloud-init would not run it again.
//! A service does all the work and runs until it succeeds once. A reboot or a lost network in
//! between is harmless.

use std::fmt::Write;

use crate::catalog::opencv::Requirement;
use crate::check::Refused;

/// The login name of a workspace's owner.
pub const USER: &str = "developer";

/// Maximum size of user data in AWS, in bytes before base64.
pub const LIMIT: usize = 16 * 1024;

/// The values that may differ between machines.
#[derive(Clone, Copy, Debug)]
pub struct CloudInit<'a> {
    /// Public keys for login, as lines of `authorized_keys`. Empty: login through Session Manager
    /// only.
    pub ssh_public_keys: &'a [String],
    /// The OpenCV release to install.
    pub opencv: &'a Requirement,
}

/// Returns user data for one machine. Rejects keys that make it longer than AWS accepts.
pub fn render(config: &CloudInit<'_>) -> Result<String, Refused> {
    let mut text = String::with_capacity(8 * 1024);
    text.push_str("#cloud-config\n");
    users(&mut text, config.ssh_public_keys);
    text.push_str("write_files:\n");
    file(&mut text, "/opt/paved/requirements.txt", "0644", &requirements(config.opencv));
    file(&mut text, "/opt/paved/setup.sh", "0755", include_str!("cloud_init/setup.sh"));
    file(
        &mut text,
        "/etc/systemd/system/paved-setup.service",
        "0644",
        include_str!("cloud_init/setup.service"),
    );
    file(&mut text, "/etc/profile.d/paved.sh", "0644", include_str!("cloud_init/profile.sh"));
    text.push_str("runcmd:\n  - [systemctl, enable, --now, --no-block, paved-setup.service]\n");
    if text.len() <= LIMIT { Ok(text) } else { Err(too_long(config.ssh_public_keys, text.len())) }
}

/// The image's own user stays (`default`), and our user is added. Our user has no password, and
/// logs in with a key or through Session Manager.
fn users(text: &mut String, keys: &[String]) {
    text.push_str("ssh_pwauth: false\nusers:\n  - default\n");
    put(text, format_args!("  - name: {USER}\n"));
    text.push_str("    gecos: Workspace owner\n    shell: /bin/bash\n    lock_passwd: true\n");
    text.push_str("    sudo: \"ALL=(ALL) NOPASSWD:ALL\"\n");
    if !keys.is_empty() {
        text.push_str("    ssh_authorized_keys:\n");
    }
    for key in keys {
        put(text, format_args!("      - {}\n", Quoted(key)));
    }
}

/// One entry of `write_files`, its content as a block.
fn file(text: &mut String, path: &str, mode: &str, content: &str) {
    put(text, format_args!("  - path: {path}\n    permissions: \"{mode}\"\n    content: |\n"));
    for line in content.lines() {
        let indent = if line.is_empty() { "" } else { "      " };
        put(text, format_args!("{indent}{line}\n"));
    }
}

/// The requirements for pip. A comment before them has the newest possible Python, for the setup.
fn requirements(opencv: &Requirement) -> String {
    let python =
        opencv.newest_python.map(|version| format!("# python<={version}\n")).unwrap_or_default();
    format!("{python}{}\n{}\n", opencv.opencv, opencv.numpy)
}

fn too_long(keys: &[String], length: usize) -> Refused {
    let in_keys: usize = keys.iter().map(String::len).sum();
    Refused {
        found: format!("{} keys of {in_keys} bytes in all", keys.len()),
        allowed: format!(
            "at most {} bytes of keys, because user data has at most {LIMIT} bytes. Use ed25519 \
             keys, which are short",
            in_keys.saturating_sub(length - LIMIT)
        ),
    }
}

/// A text as a YAML scalar in double quotes. It has only ASCII characters that cannot end the
/// scalar or the line.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                ' '..='~' => f.write_char(c)?,
                _ => write!(f, "\\U{:08x}", u32::from(c))?,
            }
        }
        f.write_char('"')
    }
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(what);
}
