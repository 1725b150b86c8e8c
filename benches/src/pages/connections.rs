//! The connections of a server of this machine, as its kernel counts them.

use anyhow::{Context as _, Result};

/// Returns how many connections of the server at `port` have bytes that the other end does not take.
pub(super) fn unread(port: u16) -> Result<usize> {
    let table = std::fs::read_to_string("/proc/net/tcp").context("/proc/net/tcp")?;
    Ok(table.lines().filter(|line| waits(line, port)).count())
}

/// Says whether a line of the kernel's table is a connection of `port` with bytes that wait to be sent.
fn waits(line: &str, port: u16) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    let local = fields.next().and_then(|address| address.split_once(':'));
    let queued = fields.nth(2).and_then(|queues| queues.split_once(':'));
    let is_hex = |text: &str, wanted: u64| u64::from_str_radix(text, 16) == Ok(wanted);
    local.is_some_and(|(_, local)| is_hex(local, port.into()))
        && queued.is_some_and(|(sending, _)| !is_hex(sending, 0))
}

#[cfg(test)]
mod tests {
    use super::waits;

    #[test]
    fn what_waits_to_be_sent_from_the_port_counts() {
        let line = |port: &str, sending: &str| {
            format!("   0: 0100007F:{port} 0100007F:A1B2 01 {sending}:00000000 00:00000000 0 0 1")
        };
        assert!(waits(&line("1F90", "0000FFFF"), 8080));
        assert!(!waits(&line("1F90", "00000000"), 8080));
        assert!(!waits(&line("1F91", "0000FFFF"), 8080));
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when";
        assert!(!waits(head, 8080));
    }
}
