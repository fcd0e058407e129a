//! Free ports of loopback.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, TcpListener},
    sync::{Mutex, OnceLock, PoisonError},
};

use anyhow::{Result, bail};

/// Below what the kernel gives to outgoing connections, so that a program that is started again finds its port free.
const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;

/// A port of 127.0.0.1 that nobody listens on, and that is not given a second time.
pub fn free() -> Result<u16> {
    static GIVEN: OnceLock<Mutex<HashSet<u16>>> = OnceLock::new();
    let mut given = GIVEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    // A random start, as other control planes of this machine look for ports too.
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

/// Whether somebody listens there.
pub async fn answers(port: u16) -> bool {
    tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by it")]
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports: HashSet<u16> = (0..50).map(|_| free().unwrap()).collect();
        assert_eq!(ports.len(), 50);
    }
}
