//! The place where the ranks of a job meet: an address, or a file that rank 0 writes its address
//! into.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result, refuse};

/// The first line of a file.
const TITLE: &str = "warpstride rendezvous 1";
/// The first words of a file of any version.
const ANY_VERSION: &str = "warpstride rendezvous ";
/// The most bytes of a file that are read.
const MOST: u64 = 4096;
/// The most addresses of a file.
const MOST_ADDRESSES: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The host and the port of rank 0.
    Address(String, u16),
    File(PathBuf),
    /// A job of one rank meets nowhere.
    Nowhere,
}

impl Place {
    /// Parses `host:port`, where an IPv6 address stands in brackets.
    pub(super) fn address(text: &str) -> Result<Self> {
        let parsed = text.rsplit_once(':').and_then(|(host, port)| {
            let host = host.strip_prefix('[').map_or(Some(host), |host| host.strip_suffix(']'))?;
            let port: u16 = port.parse().ok()?;
            (!host.is_empty() && port > 0).then(|| (host.to_owned(), port))
        });
        let Some((host, port)) = parsed else {
            refuse!(InvalidArgument, "`{text}` is not an address; give the host and the port of rank 0 as host:port")
        };
        Ok(Self::Address(host, port))
    }

    /// The place in a sentence.
    pub(super) fn named(&self) -> String {
        match self {
            Self::Address(host, port) if host.contains(':') => format!("at [{host}]:{port}"),
            Self::Address(host, port) => format!("at {host}:{port}"),
            Self::File(path) => format!("by the file {}", path.display()),
            Self::Nowhere => "nowhere".into(),
        }
    }

    /// The addresses at which rank 0 may be, with the number that it asks for. The error is the
    /// clause about why it is not known yet.
    pub(super) fn look_up(&self) -> Result<(Vec<SocketAddr>, u128), String> {
        match self {
            Self::Address(host, port) => {
                let found = (host.as_str(), *port).to_socket_addrs();
                let found = found.map_err(|error| format!("the name {host} has no address ({error})"))?;
                Ok((found.collect(), 0))
            }
            Self::File(path) => match read(path) {
                Ok(text) => parse(&text).ok_or_else(|| format!("{} is not a file of a rendezvous", path.display())),
                Err(error) => Err(format!("rank 0 has not written {} ({error})", path.display())),
            },
            Self::Nowhere => Ok((Vec::new(), 0)),
        }
    }
}

/// The place as rank 0 has it open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) listeners: Vec<TcpListener>,
    pub(super) nonce: u128,
    posted: Option<PathBuf>,
}

impl Open {
    /// Listens, and writes the file if there is one.
    pub(super) fn new(place: &Place) -> io::Result<Self> {
        match place {
            Place::Address(host, port) => {
                let listeners = listen(host, *port)?;
                Ok(Self { listeners, nonce: 0, posted: None })
            }
            Place::File(path) => {
                let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))
                    .or_else(|_| TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)))?;
                listener.set_nonblocking(true)?;
                let nonce = random();
                post(path, nonce, &own_addresses(listener.local_addr()?))?;
                Ok(Self { listeners: vec![listener], nonce, posted: Some(path.clone()) })
            }
            Place::Nowhere => Ok(Self { listeners: Vec::new(), nonce: 0, posted: None }),
        }
    }

    /// Returns whether the file is still the one that this process wrote.
    pub(super) fn is_own(&self) -> bool {
        let is_own = |path: &PathBuf| {
            read(path).ok().and_then(|text| parse(&text)).is_some_and(|(_, nonce)| nonce == self.nonce)
        };
        self.posted.as_ref().is_none_or(is_own)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_own()
            && let Some(path) = &self.posted
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Fails if the file that rank 0 would replace has other content than that of a rendezvous.
pub(super) fn check_replaceable(path: &Path) -> Result<()> {
    let content = match fs::metadata(path) {
        Err(_) => return Ok(()),
        Ok(there) if there.is_file() => read(path),
        Ok(_) => refuse!(InvalidArgument, "{} is not a file; name a file for the rendezvous", path.display()),
    };
    match content {
        Ok(text) if text.is_empty() || text.starts_with(ANY_VERSION) => Ok(()),
        Ok(_) => refuse!(InvalidArgument, "{} has other content; name a new file for the rendezvous", path.display()),
        Err(error) => {
            let sentence = format!("cannot read {}: {error}; name another file for the rendezvous", path.display());
            Err(Error::new(ErrorKind::Io, sentence))
        }
    }
}

/// Listens at a port: for this host alone if the name of rank 0 is that of the loopback, else at
/// all addresses. The name of a host may lead to its loopback there, and to the network elsewhere.
fn listen(host: &str, port: u16) -> io::Result<Vec<TcpListener>> {
    let loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) || host == "localhost";
    let addresses: Vec<SocketAddr> = if loopback {
        (host, port).to_socket_addrs()?.collect()
    } else {
        vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
    };
    let (mut listeners, mut failed) = (Vec::new(), None);
    for address in addresses {
        match TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener)) {
            Ok(listener) => listeners.push(listener),
            // If the first listener takes IPv4 too, the system refuses the second one.
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// The addresses of a listener: the loopback's, and the one from which this host reaches others.
fn own_addresses(listener: SocketAddr) -> Vec<SocketAddr> {
    // Addresses of documentation. No packet is sent to them.
    let (loopback, any, far): (IpAddr, IpAddr, IpAddr) = if listener.is_ipv4() {
        (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into())
    } else {
        let far = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::UNSPECIFIED.into(), far.into())
    };
    let outward = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((far, 9))?;
        socket.local_addr()
    };
    let outward = outward().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified() && *ip != loopback);
    [Some(loopback), outward].into_iter().flatten().map(|ip| SocketAddr::new(ip, listener.port())).collect()
}

/// Writes the file under another name, and renames it.
fn post(path: &Path, nonce: u128, addresses: &[SocketAddr]) -> io::Result<()> {
    let mut text = format!("{TITLE}\n{nonce:032x}\n");
    for address in addresses {
        text += &format!("{address}\n");
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{nonce:032x}"));
    let temporary = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // The number in it admits to the job.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| file.write_all(text.as_bytes()));
    let named = written.and_then(|()| fs::rename(&temporary, path));
    if named.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    named
}

fn read(path: &Path) -> io::Result<String> {
    // Another kind of file might keep its reader waiting.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse(text: &str) -> Option<(Vec<SocketAddr>, u128)> {
    let mut lines = text.lines();
    lines.next().filter(|&title| title == TITLE)?;
    let nonce = lines.next().filter(|nonce| nonce.len() == 32)?;
    let nonce = u128::from_str_radix(nonce, 16).ok()?;
    let addresses: Vec<SocketAddr> = lines.take(MOST_ADDRESSES).map(str::parse).collect::<Result<_, _>>().ok()?;
    (!addresses.is_empty()).then_some((addresses, nonce))
}

/// A number that other processes do not guess: the keys of the standard library's hash maps are the
/// system's random bytes.
pub(super) fn random() -> u128 {
    let draw = || u128::from(RandomState::new().build_hasher().finish());
    // The keys of one thread differ by a counter, so the second number is of another thread.
    let other = std::thread::Builder::new().spawn(draw).ok().and_then(|thread| thread.join().ok());
    draw() << 64 | other.unwrap_or_else(draw)
}

#[cfg(test)]
mod tests;
