//! Free ports of loopback, and listening sockets.

use std::{
    collections::{HashMap, HashSet},
    fs,
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, TcpListener},
    sync::{Mutex, OnceLock, PoisonError},
};

use anyhow::{Context, Result, bail};

/// Below the kernel's range for outgoing connections, so that a restarted program finds its port
/// free.
const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;

/// A free port of 127.0.0.1. No port is returned twice.
pub fn free() -> Result<u16> {
    static GIVEN: OnceLock<Mutex<HashSet<u16>>> = OnceLock::new();
    let mut given =
        GIVEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    // Start at a random port, because other control planes on this machine look for ports too.
    let start = RandomState::new().hash_one(0) % u64::from(LAST - FIRST);
    let start = FIRST + u16::try_from(start)?;
    for port in (start..LAST).chain(FIRST..start) {
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    bail!("no port of 127.0.0.1 between {FIRST} and {LAST} is free")
}

/// Whether a program listens on a port.
pub async fn answers(port: u16) -> bool {
    tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    /// Its address, in the kernel's own notation.
    pub address: String,
    /// Whether only this machine can reach it.
    pub is_loopback: bool,
    /// The command of its process.
    pub command: String,
}

/// All TCP listeners of this process and its descendants.
pub fn listeners() -> Result<Vec<Listener>> {
    let sockets = sockets()?;
    let parents: HashMap<u32, u32> =
        processes()?.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let is_ours = |pid: u32| {
        let mut ancestors = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        ancestors.any(|pid| pid == std::process::id())
    };
    let mut found = Vec::new();
    for pid in parents.keys().copied().filter(|pid| is_ours(*pid)) {
        // The process may have ended meanwhile.
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        for address in targets.filter_map(|target| sockets.get(target.to_str()?)) {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(Listener {
                address: address.clone(),
                is_loopback: is_loopback(address),
                command,
            });
        }
    }
    Ok(found)
}

/// The addresses of all listening TCP sockets of this machine. The keys are their names among a
/// process's files: `socket:[<inode>]`.
fn sockets() -> Result<HashMap<String, String>> {
    const LISTENS: &str = "0A";
    let mut sockets = HashMap::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // Without IPv6, the second table does not exist.
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [_, address, _, state, _, _, _, _, _, inode, ..] = fields[..] else {
                bail!("{table}: {line}");
            };
            if state == LISTENS {
                sockets.insert(format!("socket:[{inode}]"), address.to_owned());
            }
        }
    }
    Ok(sockets)
}

/// 127.0.0.0/8, ::1, and 127.0.0.0/8 mapped to IPv6.
fn is_loopback(address: &str) -> bool {
    let (host, _) = address.split_once(':').unwrap_or((address, ""));
    let v4 = host.strip_prefix("0000000000000000FFFF0000").unwrap_or(host);
    v4.len() == 8 && v4.ends_with("7F") || host == "00000000000000000000000001000000"
}

fn processes() -> Result<impl Iterator<Item = u32>> {
    let entries = fs::read_dir("/proc").context("reading /proc")?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn listener_on_all_addresses_is_not_loopback() {
        for (address, told) in
            [("127.0.0.1:0", true), ("[::1]:0", true), ("0.0.0.0:0", false), ("[::]:0", false)]
        {
            // The machine may lack IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = format!(":{:04X}", listener.local_addr().unwrap().port());
            let found = listeners().unwrap();
            let one = found.iter().find(|one| one.address.ends_with(&port)).unwrap();
            assert_eq!(one.is_loopback, told, "{address}");
        }
    }

    #[test]
    fn ports_are_unique() {
        let ports: HashSet<u16> = (0..50).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 50);
    }
}
