//! Connections to one server, each of which carries one request at a time.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::str::FromStr;
use tokio::net::TcpStream;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    authority: String,
    path: String,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
        let (Some("http"), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err("expected http://HOST:PORT/PATH".to_owned());
        };
        Ok(Self {
            authority: format!("{host}:{}", uri.port_u16().unwrap_or(80)),
            path: uri
                .path_and_query()
                .map_or("/".to_owned(), ToString::to_string),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Connections {
    target: Target,
    idle: RefCell<Vec<SendRequest<Full<Bytes>>>>,
}

type Failed = Box<dyn std::error::Error>;

impl Connections {
    pub(crate) fn to(target: &Target) -> Self {
        Self {
            target: target.clone(),
            idle: RefCell::default(),
        }
    }

    /// Sends a request and reads its answer to the end. Its status.
    pub(crate) async fn ask(&self, body: &str) -> Result<StatusCode, Failed> {
        let mut sender = self.connection().await?;
        let request = Request::post(&self.target.path)
            .header(HOST, &self.target.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
        let mut answer = sender.send_request(request).await?;
        while let Some(frame) = answer.frame().await {
            frame?;
        }
        self.idle.borrow_mut().push(sender);
        Ok(answer.status())
    }

    /// The connection that was used last, or a new one.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, Failed> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            match idle {
                Some(mut sender) => {
                    // Ready in a moment, or closed by the server.
                    if sender.ready().await.is_ok() {
                        return Ok(sender);
                    }
                }
                None => break,
            }
        }
        let stream = TcpStream::connect(&self.target.authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}
