//! The units of the config: durations, sizes, rates, addresses and plain values. Zero is never "unlimited".

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::Uri;

use super::node::{Node, Value};
use super::section::Setting;

/// A text setting of this module: how it is parsed, and how it is written back.
macro_rules! text_setting {
    ($type:ty, $remedy:literal, $what:literal, $parse:expr, $show:expr) => {
        impl $crate::config::section::Setting for $type {
            const REMEDY: &'static str = $remedy;

            fn read(node: &$crate::config::node::Node) -> Result<Self, String> {
                let text = node.text().ok_or_else(|| format!("is {}, not {}", node.describe(), $what))?;
                let parse: fn(&str) -> Result<Self, String> = $parse;
                parse(text.trim())
            }

            fn show(&self) -> toml::Value {
                let show: fn(&Self) -> String = $show;
                toml::Value::String(show(self))
            }
        }
    };
}
pub(crate) use text_setting;

/// As it is written: a separator may be a space, and the prefix of a credential may end in one.
impl Setting for String {
    const REMEDY: &'static str = "write a text in quotes";

    fn read(node: &Node) -> Result<Self, String> {
        node.text().map(ToOwned::to_owned).ok_or_else(|| format!("is {}, not a text", node.describe()))
    }

    fn show(&self) -> toml::Value {
        toml::Value::String(self.clone())
    }
}

text_setting!(
    Duration,
    "write a duration above zero, such as \"250ms\", \"6s\" or \"30d\"",
    "a duration",
    |text| match duration(text)? {
        Duration::ZERO => Err("must not be zero".into()),
        duration => Ok(duration),
    },
    |duration| show_duration(*duration)
);

text_setting!(
    SocketAddr,
    "write an address and port, such as \"127.0.0.1:8080\"",
    "an address",
    |text| text.parse().map_err(|_| format!("{text:?} is not an address and port")),
    ToString::to_string
);

text_setting!(Size, "write a size above zero, such as \"64KiB\" or \"1MiB\"", "a size", |text| size(text).map(Size), |size| {
    show_size(size.0)
});

text_setting!(Rate, "write a count over a time, such as \"40/s\", \"1/5s\" or \"600/5m\"", "a rate", |text| rate(text), |rate| {
    let per = show_duration(rate.per);
    // `1/s` and not `1/1s`; `1/10s` stays.
    format!(
        "{}/{}",
        rate.count,
        per.strip_prefix('1').filter(|unit| !unit.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(&per)
    )
});

text_setting!(
    Cidr,
    "write a network, such as \"10.0.0.0/8\" or \"2001:db8::/32\"",
    "a network",
    |text| cidr(text),
    |cidr| format!("{}/{}", cidr.address, cidr.bits)
);

text_setting!(
    Percent,
    "write a share, such as \"20%\"",
    "a share",
    |text| {
        let number = text.strip_suffix('%').ok_or_else(|| format!("{text:?} is not a share"))?;
        let percent = number.trim().parse().map_err(|_| format!("{text:?} is not a share"))?;
        if percent > 100 { Err(format!("{text:?} is above 100%")) } else { Ok(Percent(percent)) }
    },
    |percent| format!("{}%", percent.0)
);

text_setting!(
    Lifetime,
    "write how long, such as \"6h\", \"30d\" or \"forever\"",
    "a lifetime",
    |text| if text == "forever" { Ok(Lifetime(None)) } else { Duration::read_text(text).map(|d| Lifetime(Some(d))) },
    |lifetime| lifetime.0.map_or_else(|| "forever".into(), show_duration)
);

/// A size in bytes, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

/// `count` per `per`, both above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) count: u64,
    pub(crate) per: Duration,
}

/// Whole percent, at most 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

/// How long something is kept; none is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime(pub(crate) Option<Duration>);

impl Lifetime {
    /// A century stands for ever: it fits every clock and every store.
    pub(crate) fn duration(self) -> Duration {
        self.0.unwrap_or(Duration::from_secs(100 * 365 * 86_400))
    }
}

/// A network of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Whether an address lies inside. An IPv4-mapped IPv6 address counts as IPv4.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                let shift = 32 - u32::from(self.bits.min(32));
                net.to_bits().checked_shr(shift) == ip.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                let shift = 128 - u32::from(self.bits.min(128));
                net.to_bits().checked_shr(shift) == ip.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

trait ReadText: Sized {
    fn read_text(text: &str) -> Result<Self, String>;
}

impl ReadText for Duration {
    fn read_text(text: &str) -> Result<Self, String> {
        match duration(text)? {
            Self::ZERO => Err("must not be zero".into()),
            duration => Ok(duration),
        }
    }
}

/// Whether what is sent there stays on this machine.
pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// `1h30m`: whole numbers with units, added up.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration");
    let mut rest = text;
    let mut total = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
        total = total.checked_add(part).filter(|ms| *ms <= MAX_MILLIS).ok_or_else(|| format!("{text:?} is too long"))?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

/// Two centuries: far beyond any use, and safe to add to any clock.
const MAX_MILLIS: u64 = 200 * 365 * 86_400_000;

pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis >= size && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text:?} is not a size");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "B" => 1usize,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    if bytes == 0 { Err("must not be zero".into()) } else { Ok(bytes) }
}

fn show_size(bytes: usize) -> String {
    for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{}{unit}", bytes / size);
        }
    }
    format!("{bytes}B")
}

fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || format!("{text:?} is not a rate");
    let (count, per) = text.split_once('/').ok_or_else(wrong)?;
    let count: u64 = count.trim().parse().map_err(|_| wrong())?;
    let per = per.trim();
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { duration(per) } else { duration(&format!("1{per}")) };
    let per = per.map_err(|_| wrong())?;
    if count == 0 || per.is_zero() {
        return Err("must not be zero".into());
    }
    if count > 1_000_000_000 { Err(format!("{text:?} is too much")) } else { Ok(Rate { count, per }) }
}

fn cidr(text: &str) -> Result<Cidr, String> {
    let wrong = || format!("{text:?} is not a network");
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
    if bits > most { Err(wrong()) } else { Ok(Cidr { address, bits }) }
}

impl Setting for bool {
    const REMEDY: &'static str = "write true or false";

    fn read(node: &Node) -> Result<Self, String> {
        match &node.value {
            Value::Bool(value) => Ok(*value),
            Value::Raw(text) => text.parse().map_err(|_| format!("{text:?} is not true or false")),
            _ => Err(format!("is {}, not true or false", node.describe())),
        }
    }

    fn show(&self) -> toml::Value {
        (*self).into()
    }
}

impl Setting for i64 {
    const REMEDY: &'static str = "write a whole number";

    fn read(node: &Node) -> Result<Self, String> {
        match &node.value {
            Value::Integer(number) => Ok(*number),
            Value::Raw(text) => text.trim().parse().map_err(|_| format!("{text:?} is not a whole number")),
            _ => Err(format!("is {}, not a whole number", node.describe())),
        }
    }

    fn show(&self) -> toml::Value {
        (*self).into()
    }
}

/// A count above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u32);

impl Setting for Count {
    const REMEDY: &'static str = "write a whole number above zero";

    fn read(node: &Node) -> Result<Self, String> {
        let number = i64::read(node)?;
        match u32::try_from(number) {
            Ok(0) => Err("must not be zero".into()),
            Ok(count) => Ok(Self(count)),
            Err(_) => Err(format!("{number} is out of range")),
        }
    }

    fn show(&self) -> toml::Value {
        i64::from(self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("3650d").map(show_duration), Ok("3650d".into()));
        for wrong in ["", "6", "s", "-5s", "1.5h", "6 s", "6w", "99999999999999999999s", "400000d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_rates() {
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(show_size(65_536), "64KiB");
        for wrong in ["", "64", "0B", "64KB", "-1B", "99999999999999999999GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(rate("40/s"), Ok(Rate { count: 40, per: Duration::from_secs(1) }));
        assert_eq!(rate("600/5m"), Ok(Rate { count: 600, per: Duration::from_secs(300) }));
        for wrong in ["", "40", "0/s", "1/0s", "-1/s", "1/fortnight", "1.5/s"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn networks() {
        let ten = cidr("10.0.0.0/8").unwrap();
        assert!(ten.contains("10.9.8.7".parse().unwrap()) && !ten.contains("11.0.0.1".parse().unwrap()));
        assert!(ten.contains("::ffff:10.1.1.1".parse().unwrap()));
        assert!(cidr("0.0.0.0/0").unwrap().contains("1.2.3.4".parse().unwrap()));
        assert!(cidr("2001:db8::/32").unwrap().contains("2001:db8:1::1".parse().unwrap()));
        assert!(cidr("10.0.0.0/33").is_err() && cidr("x/8").is_err());
    }
}
