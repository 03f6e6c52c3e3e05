//! In which class a request waits, and for which tenant: read from its head.

use crate::error::Error;
use crate::message::error_response::ErrorResponse;
use crate::options::Options;
use crate::route::tenants::Tenants;
use headcount::{MAX_NAME_LEN, Request};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName};
use std::sync::{Arc, Mutex, PoisonError};

/// The last class.
pub(crate) const MOST_CLASS: u8 = 3;

/// A request's class and tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub(crate) class: u8,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) share: u32,
}

/// Class 0, and no tenant.
impl Default for Standing {
    fn default() -> Self {
        Self {
            class: 0,
            tenant: None,
            share: 1,
        }
    }
}

impl Standing {
    /// Gives a request this class and tenant.
    pub(crate) fn of<'a>(&self, request: Request<'a>) -> Request<'a> {
        let request = request.class(self.class).share(self.share);
        match &self.tenant {
            Some(name) => request.tenant(name),
            None => request,
        }
    }
}

/// By what the class and the tenant of a request are known.
#[derive(Debug)]
pub(crate) struct Standings {
    class_header: Option<HeaderName>,
    tenant_header: Option<HeaderName>,
    /// The tenants by API key.
    tenants: Option<Mutex<Tenants>>,
}

impl Standings {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            class_header: options.class_header.clone(),
            tenant_header: options.tenant_header.clone(),
            tenants: (options.tenants.as_ref()).map(|_| Mutex::default()),
        }
    }

    /// Reads the file of tenants again. If that fails, they stay as they were.
    pub(crate) fn reload(&self, options: &Options) -> Result<(), Error> {
        if let (Some(tenants), Some(path)) = (&self.tenants, &options.tenants) {
            let read = Tenants::read(path)?;
            *tenants.lock().unwrap_or_else(PoisonError::into_inner) = read;
        }
        Ok(())
    }

    /// Reads the standing of a request. A request that names a class and whose tenant has one is of the later of both,
    /// so that no client is served before its turn.
    pub(crate) fn read(&self, headers: &HeaderMap) -> Result<Standing, ErrorResponse> {
        let mut standing = match &self.tenants {
            Some(tenants) => {
                let tenants = tenants.lock().unwrap_or_else(PoisonError::into_inner);
                tenants.of(key(headers))
            }
            None => Standing::default(),
        };
        if let Some(name) = &self.tenant_header {
            standing.tenant = tenant(headers, name)?;
        }
        if let Some(name) = &self.class_header {
            standing.class = standing.class.max(class(headers, name)?);
        }
        Ok(standing)
    }
}

/// Returns the API key of a request.
fn key(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ")).then(|| key.trim_ascii())
}

/// Returns the class that a request names, and 0 if it names none.
fn class(headers: &HeaderMap, name: &HeaderName) -> Result<u8, ErrorResponse> {
    let mut values = headers.get_all(name).iter();
    let class = match (values.next(), values.next()) {
        (None, _) => return Ok(0),
        (Some(value), None) => match value.as_bytes() {
            [digit @ b'0'..=b'9'] => Some(digit - b'0').filter(|class| *class <= MOST_CLASS),
            _ => None,
        },
        (Some(_), Some(_)) => None,
    };
    class.ok_or_else(|| ErrorResponse::Class {
        field: name.clone(),
    })
}

/// Returns the tenant that a request names. An empty field names none.
fn tenant(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Arc<str>>, ErrorResponse> {
    let mut values = headers.get_all(name).iter();
    let wrong = || ErrorResponse::Tenant {
        field: name.clone(),
        most: MAX_NAME_LEN,
    };
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let value = std::str::from_utf8(value.as_bytes()).map_err(|_| wrong())?;
            match value.len() {
                0 => Ok(None),
                length if length > MAX_NAME_LEN => Err(wrong()),
                _ => Ok(Some(value.into())),
            }
        }
        (Some(_), Some(_)) => Err(wrong()),
    }
}
