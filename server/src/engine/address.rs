//! The address of an engine, `http://HOST:PORT`, which is its name in the table.
//!
//! Each address has one form, so that an engine has one row of the table: the host in lower case, IP addresses in
//! their shortest form, always with the port.

use headcount::MAX_NAME_LEN;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

const SCHEME: &str = "http://";

/// The mistake of an argument that lists several engines.
pub(crate) const SEVERAL: &str = "names several engines; give each engine by an --engine of its own, or on a line of its own in --engines-file";

/// Where an engine is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    /// A name for the resolver.
    Name(String),
    Ip(IpAddr),
    /// A link-local address, and the network interface on whose link it is.
    OnLink(Ipv6Addr, String),
}

impl Host {
    /// Returns the host without the dot at the end of a name, which only tells the resolver to append no domain.
    pub(crate) fn identity(&self) -> Cow<'_, Self> {
        match self {
            Self::Name(name) if name.ends_with('.') => {
                Cow::Owned(Self::Name(name.trim_end_matches('.').to_owned()))
            }
            _ => Cow::Borrowed(self),
        }
    }
}

impl Address {
    /// Returns the socket address, unless there is a name to look up.
    pub(crate) fn known(&self) -> Option<Result<SocketAddr, String>> {
        match &self.host {
            Host::Name(_) => None,
            Host::Ip(ip) => Some(Ok(SocketAddr::new(*ip, self.port))),
            Host::OnLink(ip, zone) => Some(
                interface(zone)
                    .map(|number| SocketAddr::V6(SocketAddrV6::new(*ip, self.port, 0, number))),
            ),
        }
    }
}

/// Returns the number of a network interface.
fn interface(name: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = CString::new(name).map_err(|e| e.to_string())?;
    // SAFETY: reads the text, which ends with a zero.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(format!("this host has no network interface {name:?}")),
        number => Ok(number),
    }
}

/// Returns the name of a network interface.
fn name_of(number: u32) -> Result<String, String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: writes a name that ends with a zero into memory that has room for the longest.
    if unsafe { libc::if_indextoname(number, name.as_mut_ptr().cast()) }.is_null() {
        return Err(format!("this host has no network interface {number}"));
    }
    let name = CStr::from_bytes_until_nul(&name).map_err(|e| e.to_string())?;
    Ok(name.to_string_lossy().into_owned())
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.host {
            Host::Name(name) => write!(f, "{SCHEME}{name}:{port}"),
            Host::Ip(ip) => write!(f, "{SCHEME}{}", SocketAddr::new(*ip, port)),
            Host::OnLink(ip, zone) => write!(f, "{SCHEME}[{ip}%25{zone}]:{port}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map_err(|why| format!("{} {why}; an engine is http://HOST:PORT", shown(text)))
    }
}

fn parse(text: &str) -> Result<Address, String> {
    let rest = match text.split_at_checked(SCHEME.len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(SCHEME) => rest,
        _ if text.to_ascii_lowercase().starts_with("https://") => {
            return Err("is for TLS, which this program does not speak to engines".to_owned());
        }
        _ => return Err("does not start with http://".to_owned()),
    };
    if rest.contains([',', ';']) {
        return Err(SEVERAL.to_owned());
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if let Some((address, weight)) = rest.split_once('=')
        && let Ok(address) = parse(&format!("{SCHEME}{address}"))
        && let Ok(weight) = weight.parse::<f32>()
        && weight.is_normal()
    {
        let right = format!("{address} weight={weight}");
        return Err(format!("has a weight in it; write {right:?}"));
    }
    if authority.contains('=') {
        return Err(
            "has a = in it; weight=, max_in_flight= and max_tokens= come after the address and a space"
                .to_owned(),
        );
    }
    if !matches!(path, "" | "/") {
        return Err("has a path; leave it out, for each request has its own".to_owned());
    }
    if authority.contains('@') {
        return Err("has a user name, which this program does not send".to_owned());
    }
    let (host, port) = match authority.find(']') {
        Some(end) => authority.split_at(end + 1),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let address = Address {
        host: read_host(host)?,
        port: read_port(port)?,
    };
    match address.to_string().len() {
        0..=MAX_NAME_LEN => Ok(address),
        length => Err(format!(
            "has {length} bytes, and at most {MAX_NAME_LEN} are allowed"
        )),
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Ok(80);
    }
    let digits = text.strip_prefix(':').unwrap_or_default();
    let port = digits.parse().ok().filter(|port| *port > 0);
    // `parse` accepts a sign.
    (port.filter(|_| digits.starts_with(|c: char| c.is_ascii_digit())))
        .ok_or_else(|| "has no port, 1 to 65535".to_owned())
}

fn read_host(text: &str) -> Result<Host, String> {
    if text.is_empty() {
        return Err("names no host".to_owned());
    }
    let host = match text.strip_prefix('[') {
        Some(literal) => read_ipv6(literal.strip_suffix(']').unwrap_or_default())?,
        None => read_name(text)?,
    };
    match host {
        Host::Ip(ip) if ip.is_unspecified() => Err(format!(
            "says {ip}, on which an engine may listen, but at which no client reaches it; write 127.0.0.1 for this host"
        )),
        host => Ok(host),
    }
}

fn read_ipv6(text: &str) -> Result<Host, String> {
    let (digits, zone) = match text.split_once('%') {
        // In a URL the percent sign itself is written %25. People write it either way.
        Some((digits, zone)) => (digits, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (text, None),
    };
    let ip = Ipv6Addr::from_str(digits).map_err(|_| "has no IPv6 address in its brackets")?;
    match zone {
        None if ip.is_unicast_link_local() => Err(
            "does not say on which link; append the network interface, as in [fe80::1%25eth0]"
                .to_owned(),
        ),
        None => Ok(Host::Ip(IpAddr::V6(ip).to_canonical())),
        Some(_) if !ip.is_unicast_link_local() => {
            Err("names a network interface, and only addresses in fe80::/10 have one".to_owned())
        }
        Some(zone) if zone.is_empty() || !zone.chars().all(is_of_zone) => {
            Err("does not name a network interface after the %25".to_owned())
        }
        // An interface has a number, a name, and perhaps more names. The address keeps its main name.
        Some(zone) => Ok(Host::OnLink(ip, name_of(interface(zone)?)?)),
    }
}

fn is_of_zone(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~')
}

fn read_name(text: &str) -> Result<Host, String> {
    if !text.is_ascii() {
        return Err(
            "has letters beyond ASCII; write the name in its DNS form (xn--...)".to_owned(),
        );
    }
    let name = text.to_ascii_lowercase();
    let mut labels: Vec<_> = name.split('.').collect();
    // A dot at the end, as in "a.example.".
    if labels.len() > 1 && labels.last() == Some(&"") {
        labels.pop();
    }
    let is_label = |label: &&str| {
        let is_of_label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !label.is_empty() && label.chars().all(is_of_label)
    };
    if !labels.iter().all(is_label) {
        return Err("names no host".to_owned());
    }
    // A name does not end in a number. Resolvers read 127.1 or 0x7f000001 as addresses, but not all alike.
    let is_number = labels.last().is_some_and(|last| {
        let hex = last.strip_prefix("0x");
        last.chars().all(|c| c.is_ascii_digit())
            || hex.is_some_and(|hex| hex.chars().all(|c| c.is_ascii_hexdigit()))
    });
    if !is_number {
        return Ok(Host::Name(name));
    }
    let ip = Ipv4Addr::from_str(&name);
    let ip = ip.map_err(|_| "has no IPv4 address of four decimal numbers")?;
    Ok(Host::Ip(ip.into()))
}

/// How many characters of a word with a mistake in it a message shows.
const SHOWN: usize = 80;

/// Quotes a word for a message; of a long word only the beginning.
pub(crate) fn shown(word: &str) -> String {
    match word.char_indices().nth(SHOWN) {
        None => format!("{word:?}"),
        Some((end, _)) => format!("{:?}... ({} bytes)", &word[..end], word.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        text.parse::<Address>().expect(text).to_string()
    }

    #[test]
    fn an_address_has_one_form() {
        for same in [
            "http://localhost:9001",
            "HTTP://LOCALHOST:9001/",
            "http://localHost:09001",
        ] {
            assert_eq!(name(same), "http://localhost:9001");
        }
        assert_eq!(name("http://a"), "http://a:80");
        assert_eq!(name("http://a:80/"), "http://a:80");
        assert_eq!(name("http://[0:0::0:1]:8"), "http://[::1]:8");
        assert_eq!(name("http://[2001:DB8::0a]"), "http://[2001:db8::a]:80");
        assert_eq!(name("http://[::ffff:10.0.0.1]:8"), "http://10.0.0.1:8");
        assert_eq!(name("http://[FE80::1%25lo]:8"), "http://[fe80::1%25lo]:8");
        assert_eq!(name("http://[fe80::1%lo]:8"), "http://[fe80::1%25lo]:8");
        assert_eq!(name("http://[fe80::1%251]:8"), "http://[fe80::1%25lo]:8");
    }

    #[test]
    fn text_that_is_not_an_address_is_refused_with_the_reason() {
        for (text, why) in [
            ("localhost:9001", "does not start with http://"),
            ("https://a:1", "TLS"),
            ("http://:1", "names no host"),
            ("http://a..b:1", "names no host"),
            ("http://a b:1", "names no host"),
            ("http://a:", "has no port"),
            ("http://a:+1", "has no port"),
            ("http://a:65536", "has no port"),
            ("http://[::1", "no IPv6 address in its brackets"),
            ("http://[::1]x", "has no port"),
            ("http://u@a:1", "user name"),
            ("http://a:1/v1", "has a path"),
            ("http://a:1?x", "has a path"),
            (
                "http://a:1,http://b:2",
                "names several engines; give each engine by an --engine of its own",
            ),
            ("http://a:1;b:2", "by an --engine of its own"),
            (
                "http://127.0.0.1:9001=2",
                "write \"http://127.0.0.1:9001 weight=2\"",
            ),
            ("http://a:1/=0.5", "write \"http://a:1 weight=0.5\""),
            ("http://a:1/v1?x=1", "has a path"),
            ("http://a:1weight=2", "come after the address and a space"),
            ("http://127.1:1", "no IPv4 address of four"),
            ("http://0x7f000001:1", "no IPv4 address of four"),
            ("http://127.0.0.01:1", "no IPv4 address of four"),
            ("http://0.0.0.0:1", "at which no client reaches it"),
            ("http://[::]:1", "at which no client reaches it"),
            ("http://bücher.example:1", "beyond ASCII"),
            ("http://[fe80::1]:1", "on which link"),
            ("http://[fe80::1%25nosuch0]:1", "no network interface"),
            ("http://[::1%25lo]:1", "only addresses in fe80"),
        ] {
            let refused = text.parse::<Address>().expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_message_shows_only_the_beginning_of_a_long_line() {
        for long in [
            "x".repeat(1 << 20),
            format!("http://a:{}", "é".repeat(1 << 20)),
        ] {
            let refused = long.parse::<Address>().expect_err("it is not an address");
            assert!(
                refused.len() < 400 && refused.contains("bytes)"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_dot_at_the_end_is_kept_and_makes_no_other_host() {
        let dotted: Address = "http://a.example.:1".parse().unwrap();
        let plain: Address = "http://a.example:1".parse().unwrap();
        assert_eq!(dotted.to_string(), "http://a.example.:1");
        assert_eq!(dotted.host.identity(), plain.host.identity());
    }
}
