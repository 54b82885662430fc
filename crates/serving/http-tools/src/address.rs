//! Which addresses a request may go to.
//!
//! An address that carries an IPv4 address (mapped, compatible, NAT64, 6to4) is judged by the one
//! that it carries. Metadata services, link-local and multicast addresses are never opened.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, where it is none of the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// The machine itself: 127.0.0.0/8, `::1`.
    Loopback,
    /// A private network: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15.
    Private,
    /// An IPv6 network of one's own: fc00::/7.
    UniqueLocal,
    /// The network of a provider: 100.64.0.0/10.
    CarrierGrade,
    /// Gives credentials to whoever asks: 169.254.169.254, fd00:ec2::254 and others.
    Metadata,
    /// The same link: 169.254.0.0/16, fe80::/10.
    LinkLocal,
    /// Many receivers: 224.0.0.0/4, ff00::/8, the broadcast address.
    Multicast,
    /// No address of a host: 0.0.0.0/8, `::`, documentation, reserved and tunnel ranges.
    Reserved,
}

impl AddressClass {
    /// The field's term.
    pub fn name(self) -> &'static str {
        match self {
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::UniqueLocal => "unique-local",
            AddressClass::CarrierGrade => "carrier-grade NAT",
            AddressClass::Metadata => "metadata service",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Multicast => "multicast",
            AddressClass::Reserved => "reserved",
        }
    }

    /// Whether `allow_private` opens it.
    pub fn can_be_opened(self) -> bool {
        matches!(self, AddressClass::Loopback | AddressClass::Private | AddressClass::UniqueLocal | AddressClass::CarrierGrade)
    }
}

/// Services that hand out credentials, within ranges that may be opened or look public.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254), // most clouds
    Ipv4Addr::new(169, 254, 170, 2),   // containers at AWS
    Ipv4Addr::new(169, 254, 170, 23),  // pods at AWS
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle
    Ipv4Addr::new(168, 63, 129, 16),   // Azure
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // AWS
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),  // pods at AWS
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // Google
];

/// What an address is; `None`: one of the public internet.
pub fn classify(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// Why no request may go there.
pub(crate) fn refused(address: IpAddr, allow_private: bool) -> Option<AddressClass> {
    classify(address).filter(|class| !(allow_private && class.can_be_opened()))
}

fn classify_v4(address: Ipv4Addr) -> Option<AddressClass> {
    let [a, b, c, _] = address.octets();
    if METADATA_V4.contains(&address) {
        return Some(AddressClass::Metadata);
    }
    Some(match (a, b, c) {
        (127, ..) => AddressClass::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (198, 18 | 19, _) => AddressClass::Private,
        (100, 64..=127, _) => AddressClass::CarrierGrade,
        (169, 254, _) => AddressClass::LinkLocal,
        (224..=239, ..) => AddressClass::Multicast,
        _ if address == Ipv4Addr::BROADCAST => AddressClass::Multicast,
        (0 | 240.., ..) | (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) => AddressClass::Reserved,
        _ => return None,
    })
}

fn classify_v6(address: Ipv6Addr) -> Option<AddressClass> {
    if METADATA_V6.contains(&address) {
        return Some(AddressClass::Metadata);
    }
    if address == Ipv6Addr::LOCALHOST {
        return Some(AddressClass::Loopback);
    }
    if address.is_unspecified() {
        return Some(AddressClass::Reserved);
    }
    if let Some(carried) = carried(address) {
        return classify_v4(carried);
    }
    let segments = address.segments();
    Some(match segments[0] {
        0xfc00..=0xfdff => AddressClass::UniqueLocal,
        0xfe80..=0xfebf => AddressClass::LinkLocal,
        0xff00.. => AddressClass::Multicast,
        // Teredo and its neighbours (2001::/23), documentation
        0x2001 if segments[1] < 0x200 || segments[1] == 0xdb8 => AddressClass::Reserved,
        0x3fff if segments[1] < 0x1000 => AddressClass::Reserved,
        // all that is given out as global unicast
        0x2000..=0x3fff => return None,
        _ => AddressClass::Reserved,
    })
}

/// The IPv4 address that a form of IPv6 address carries.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        // compatible ::/96, mapped ::ffff:0:0/96, translated ::ffff:0:0:0/96, NAT64 64:ff9b::/96
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(v4(high, low))
        }
        // 6to4 2002::/16
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_known_in_every_form() {
        use AddressClass::*;
        for (text, class) in [
            ("8.8.8.8", None),
            ("93.184.216.34", None),
            ("2606:4700::1111", None),
            ("64:ff9b::8.8.8.8", None),
            ("::ffff:8.8.8.8", None),
            ("2002:808:808::1", None),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.3.4", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::127.0.0.1", Some(Loopback)),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("2002:7f00:1::", Some(Loopback)),
            ("::ffff:0:127.0.0.1", Some(Loopback)),
            ("10.0.0.1", Some(Private)),
            ("172.16.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("172.32.0.1", None),
            ("192.168.1.1", Some(Private)),
            ("198.18.0.1", Some(Private)),
            ("::ffff:10.1.2.3", Some(Private)),
            ("64:ff9b::a00:1", Some(Private)),
            ("2002:c0a8:101::1", Some(Private)),
            ("100.64.0.1", Some(CarrierGrade)),
            ("100.128.0.1", None),
            ("169.254.1.1", Some(LinkLocal)),
            ("fe80::1", Some(LinkLocal)),
            ("169.254.169.254", Some(Metadata)),
            ("::ffff:169.254.169.254", Some(Metadata)),
            ("64:ff9b::169.254.169.254", Some(Metadata)),
            ("2002:a9fe:a9fe::", Some(Metadata)),
            ("fd00:ec2::254", Some(Metadata)),
            ("100.100.100.200", Some(Metadata)),
            ("168.63.129.16", Some(Metadata)),
            ("fc00::1", Some(UniqueLocal)),
            ("fd12:3456::1", Some(UniqueLocal)),
            ("224.0.0.1", Some(Multicast)),
            ("255.255.255.255", Some(Multicast)),
            ("ff02::1", Some(Multicast)),
            ("0.0.0.0", Some(Reserved)),
            ("0.1.2.3", Some(Reserved)),
            ("240.0.0.1", Some(Reserved)),
            ("192.0.2.1", Some(Reserved)),
            ("203.0.113.9", Some(Reserved)),
            ("::", Some(Reserved)),
            ("2001::1", Some(Reserved)),
            ("2001:db8::1", Some(Reserved)),
            ("64:ff9b:1::1", Some(Reserved)),
            ("fec0::1", Some(Reserved)),
            ("100::1", Some(Reserved)),
        ] {
            assert_eq!(classify(text.parse().unwrap()), class, "{text}");
        }
    }

    #[test]
    fn only_networks_of_ones_own_can_be_opened() {
        for (text, opened) in
            [("127.0.0.1", true), ("10.1.1.1", true), ("fd12::1", true), ("169.254.169.254", false), ("fe80::1", false), ("0.0.0.0", false)]
        {
            assert_eq!(refused(text.parse().unwrap(), true).is_none(), opened, "{text}");
            assert!(refused(text.parse().unwrap(), false).is_some(), "{text}");
        }
    }
}
