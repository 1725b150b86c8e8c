//! Somebody who is logged in by a browser, and sends what its forms send.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::people::serving::TOKEN;

/// Somebody at a page, logged in by a token.
pub(super) struct Page {
    address: String,
    cookie: String,
}

impl Page {
    /// Logs in.
    pub(super) fn enter(address: &str) -> Self {
        let mut page = Self {
            address: address.to_owned(),
            cookie: String::new(),
        };
        let (status, answer) = page.send("/login", &format!("token={TOKEN}&back=/"));
        assert_eq!(status, 303, "{answer}");
        let set = answer
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        set.unwrap()
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut page.cookie);
        page
    }

    /// Returns a page.
    pub(super) fn read(&self, path: &str) -> String {
        let (status, page) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{page}");
        page
    }

    /// Returns the proof that stands in the forms of a page.
    pub(super) fn proof(&self, path: &str) -> String {
        let page = self.read(path);
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    /// Sends a form; returns the status and the whole of the answer, which is not followed.
    pub(super) fn send(&self, path: &str, form: &str) -> (u16, String) {
        self.ask("POST", path, form)
    }

    fn ask(&self, method: &str, path: &str, form: &str) -> (u16, String) {
        let (address, cookie) = (&self.address, &self.cookie);
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nCookie: {cookie}\r\n\
             Accept: text/html,application/xhtml+xml\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}
