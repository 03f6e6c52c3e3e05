//! `headcount-server`, where it would no longer be like nginx or HAProxy.

use super::{Catcher, Mutant, fault};

const CORPUS: Catcher = Catcher::Test("corpus", "odd_messages");

pub(super) const FAULTS: &[Mutant] = &[
    fault(
        "what concerns the connection to an engine goes on to the client",
        "server/src/worker/proxy.rs",
        &[(
            "                headers::remove_hop_by_hop(&mut head.headers);\n                framing::",
            "                framing::",
        )],
        CORPUS,
    ),
    fault(
        "headers that Connection lists go on",
        "server/src/message/headers.rs",
        &[("!needed.contains(name)", "needed.is_empty()")],
        CORPUS,
    ),
    fault(
        "an engine of HTTP/1.0 makes an answer of HTTP/1.0",
        "server/src/message/framing.rs",
        &[("    head.version = Version::HTTP_11;\n", "")],
        CORPUS,
    ),
    fault(
        "an expectation that was met goes on to the engine",
        "server/src/message/headers.rs",
        &[("    header::EXPECT,\n", "    header::TRAILER,\n")],
        CORPUS,
    ),
    fault(
        "an answer whose engine is silent looks whole",
        "server/src/worker/response_body.rs",
        &[(
            "None => Some(Err(ResponseError::TooSlow { limit })),",
            "None => None,",
        )],
        CORPUS,
    ),
];
