//! Decides which addresses belong to the outside: those that anybody in the world would reach under the same number.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are local, shared, kept for special use, or reach many at once: address and bits.
const CLOSED_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];
/// The only part of IPv6 that is given out to the world.
const GIVEN_OUT: (u16, u32) = (0x2000, 3);
/// What of that is kept for special use or holds an address of IPv4: the first two segments and bits.
const CLOSED_V6: [([u16; 2], u32); 4] = [
    // Tunnels, benchmarks, identifiers and the like.
    ([0x2001, 0], 23),
    ([0x2001, 0x0db8], 32),
    ([0x2002, 0], 16),
    ([0x3fff, 0], 20),
];
/// What translates to IPv4, whose address are the last 32 bits.
const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// Says whether `address` is one of the outside.
pub(super) fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !CLOSED_V4.iter().any(|(network, length)| {
        let network = Ipv4Addr::from(*network).to_bits();
        (bits ^ network) >> (32 - length) == 0
    })
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_global_v4(mapped);
    }
    let segments = address.segments();
    if segments.starts_with(&TRANSLATED) {
        let [.., high, low] = segments;
        return is_global_v4(Ipv4Addr::from_bits(joined([high, low])));
    }
    let (network, length) = GIVEN_OUT;
    let [first, second, ..] = segments;
    (first ^ network) >> (16 - length) == 0
        && !CLOSED_V6.iter().any(|(network, length)| {
            (joined([first, second]) ^ joined(*network)) >> (32 - length) == 0
        })
}

fn joined([high, low]: [u16; 2]) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_whole_world_reaches_is_of_the_outside() {
        let outside = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
             169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 \
             198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1 2a00::1 2003::1 2001:200::1 2001:4860::8888 \
             ::ffff:1.1.1.1 64:ff9b::1.1.1.1";
        let inside = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 \
             169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 \
             198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 \
             ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1 64:ff9b::127.0.0.1 64:ff9b:1::1 \
             100::1 fe80::1 fec0::1 fc00::1 fd12:3456::1 ff02::1 2001::1 2001:db8::1 2001:1ff::1 2002:7f00:1::1 3fff::1 \
             3fff:fff::1 4000::1 5f00::1";
        for (text, expected) in [(outside, true), (inside, false)] {
            for address in text.split_whitespace() {
                assert_eq!(is_global(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
