//! A client on a raw socket: it can read slowly, break off, and tell an answer that is
//! whole from one that was cut.

use rustix::net::{self, AddressFamily, SocketType};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// How long an answer may take, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request on a connection of its own.
#[derive(Debug)]
pub(crate) struct Stream {
    connection: BufReader<TcpStream>,
    head: Option<String>,
}

impl Stream {
    /// Connects and sends these bytes.
    pub(crate) fn send(to: SocketAddr, bytes: &str) -> Self {
        Self::send_bytes(to, bytes.as_bytes())
    }

    /// The same with bytes that are not text.
    pub(crate) fn send_bytes(to: SocketAddr, bytes: &[u8]) -> Self {
        Self::on(TcpStream::connect(to).unwrap(), bytes)
    }

    /// The same by a distant client, for which the kernels keep only a few dozen KiB.
    pub(crate) fn send_from_afar(to: SocketAddr, bytes: &str) -> Self {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        net::sockopt::set_socket_recv_buffer_size(&socket, 4096).unwrap();
        let segment: libc::c_int = 536;
        // SAFETY: reads that number only.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_MAXSEG,
                (&raw const segment).cast(),
                size_of_val(&segment) as libc::socklen_t,
            )
        };
        assert_eq!(set, 0);
        net::connect(&socket, &to).unwrap();
        Self::on(socket.into(), bytes.as_bytes())
    }

    fn on(mut connection: TcpStream, bytes: &[u8]) -> Self {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection.set_nodelay(true).unwrap();
        connection.write_all(bytes).unwrap();
        Self {
            connection: BufReader::new(connection),
            head: None,
        }
    }

    /// Asks for a stream of so many tokens.
    pub(crate) fn ask(to: SocketAddr, tokens: u64) -> Self {
        Self::post(to, &format!("{{\"max_tokens\":{tokens},\"stream\":true}}"))
    }

    pub(crate) fn post(to: SocketAddr, body: &str) -> Self {
        let length = body.len();
        let head = "POST /v1/completions HTTP/1.1\r\nHost: test\r\nConnection: close";
        Self::send(
            to,
            &format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"),
        )
    }

    pub(crate) fn into_connection(self) -> TcpStream {
        self.connection.into_inner()
    }

    /// Sends more.
    pub(crate) fn more(&mut self, bytes: &str) -> std::io::Result<()> {
        self.connection.get_mut().write_all(bytes.as_bytes())
    }

    /// Sends another request, to whose answer the next calls refer.
    pub(crate) fn again(&mut self, bytes: &str) {
        self.head = None;
        self.more(bytes).unwrap();
    }

    /// The head of the answer; empty if there is none.
    pub(crate) fn head(&mut self) -> &str {
        let connection = &mut self.connection;
        self.head.get_or_insert_with(|| {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if !matches!(connection.read_line(&mut head), Ok(1..)) {
                    return String::new();
                }
            }
            head
        })
    }

    /// Whether an answer begins, or the connection ends, within this time.
    pub(crate) fn answers_within(&mut self, time: Duration) -> bool {
        let connection = self.connection.get_ref();
        connection.set_read_timeout(Some(time)).unwrap();
        let answers = connection.peek(&mut [0]).is_ok();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        answers
    }

    /// The status of the answer; 0 if there is none.
    pub(crate) fn status(&mut self) -> u16 {
        let word = self.head().split_whitespace().nth(1);
        word.map_or(0, |status| status.parse().unwrap())
    }

    /// Waits for a token. Returns false if the stream ends first.
    pub(crate) fn token(&mut self) -> bool {
        self.head();
        let mut line = String::new();
        while matches!(self.connection.read_line(&mut line), Ok(1..)) {
            if line.starts_with("data: {") {
                return true;
            }
            line.clear();
        }
        false
    }

    /// Shuts down the sending side.
    pub(crate) fn shut(&mut self) {
        let connection = self.connection.get_ref();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Reads the rest up to the end of the connection. Fails if it is reset.
    pub(crate) fn rest_unless_reset(&mut self) -> std::io::Result<String> {
        self.head();
        let mut rest = String::new();
        self.connection.read_to_string(&mut rest)?;
        Ok(rest)
    }

    /// Reads exactly so many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.connection.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Whether the other side ends the connection before the client's timeout.
    pub(crate) fn is_ended(&mut self) -> bool {
        let mut piece = [0; 1 << 12];
        loop {
            match self.connection.read(&mut piece) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    }

    /// Reads the rest up to the end of the connection. Returns whether it ends as a chunked body has to.
    pub(crate) fn rest(&mut self) -> (String, bool) {
        self.head();
        let (mut rest, start) = (Vec::new(), Instant::now());
        let mut piece = [0; 1 << 16];
        // A reset is an end, too.
        while let Ok(length @ 1..) = self.connection.read(&mut piece) {
            rest.extend(&piece[..length]);
            assert!(start.elapsed() < PATIENCE, "the answer ends");
        }
        let whole = rest.ends_with(b"0\r\n\r\n");
        (String::from_utf8_lossy(&rest).into_owned(), whole)
    }
}
