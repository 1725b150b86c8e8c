//! Brings up the loopback of a network namespace: a test that serves asks itself there.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// The loopback is the first interface of every namespace.
const INDEX: i32 = 1;
const IS_UP: u32 = 1;
const SET_LINK: u16 = 16;
const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
/// What an answer begins with: a header, and the number of an error.
const HEADER_BYTES: usize = 16;

/// Asks the kernel, and waits for its yes.
pub(super) fn bring_up() -> io::Result<()> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    send(socket.as_raw_fd(), &request(), MsgFlags::empty())?;
    let mut answer = [0; 256];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let code = answer
        .get(HEADER_BYTES..length)
        .and_then(|rest| rest.first_chunk());
    match code.map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes a message that sets the flag: its header, then which interface and what of it changes.
fn request() -> Vec<u8> {
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(SET_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Its number and its sender do not matter: there is one.
    message.extend([0; 8]);
    // Family, padding and type.
    message.extend([0; 4]);
    message.extend(INDEX.to_ne_bytes());
    message.extend(IS_UP.to_ne_bytes());
    message.extend(IS_UP.to_ne_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_as_long_as_it_says() {
        let message = request();
        assert_eq!(message.len(), 32);
        assert_eq!(message.first_chunk(), Some(&32_u32.to_ne_bytes()));
    }
}
