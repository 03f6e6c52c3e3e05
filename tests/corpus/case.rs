//! A case of the corpus: the steps of its client and of its engine.

/// An odd request or an odd answer, with all steps that show how a front treats it.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) client: Vec<Client>,
    pub(crate) reads: Reads,
    pub(crate) engine: Vec<Engine>,
    /// How many answers the client waits for, interim ones not counted.
    pub(crate) answers: usize,
    /// How many milliseconds the connection rests before the client checks whether it can still be used.
    pub(crate) rest: u64,
    /// Whether all waits are cut short after a second: for cases in which a side is silent.
    pub(crate) is_impatient: bool,
    /// Why `headcount-server` differs from both others, if it does.
    pub(crate) because: Option<&'static str>,
}

/// The steps of a client, one after the other. Unless it leaves, it then reads the answers.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    Send(Vec<u8>),
    /// Milliseconds.
    Pause(u64),
    /// Waits until the engine has got a whole head.
    UntilAsked,
    /// Waits for the first byte of an answer.
    UntilAnswered,
    /// The same for at most a second, as clients do that expect 100.
    UntilAnsweredOrASecond,
    /// Checks that the table of `headcount-server` counts so many requests now. Other fronts skip this.
    Holds(u32),
    HalfClose,
    Leave,
    Reset,
}

/// How much of a request the engine reads before it acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    All,
    Head,
    /// Acts as soon as there is a new connection; on the first one of the case only.
    Nothing,
}

/// The steps of an engine for each request, one after the other.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    Send(Vec<u8>),
    /// Answers properly, with the request line as the body.
    Echo,
    /// Milliseconds.
    Pause(u64),
    Close,
    Reset,
    /// Waits until the front closes the connection, by which an engine learns that the client has left.
    UntilTold,
}

/// A client that sends these bytes to an engine that answers properly.
pub(crate) fn sends(name: &'static str, bytes: impl AsRef<[u8]>) -> Case {
    does(name, [say(bytes)])
}

/// A client that pauses between these bytes and those, and an engine that answers properly.
pub(crate) fn pauses(name: &'static str, before: impl AsRef<[u8]>, after: &str) -> Case {
    does(name, [say(before), Client::Pause(300), say(after)])
}

/// A client with these steps, and an engine that answers properly.
pub(crate) fn does(name: &'static str, client: impl Into<Vec<Client>>) -> Case {
    Case {
        name,
        client: client.into(),
        reads: Reads::All,
        engine: vec![Engine::Echo],
        answers: 1,
        rest: 0,
        is_impatient: false,
        because: None,
    }
}

/// An engine that answers a proper request with these bytes.
pub(crate) fn answers(name: &'static str, bytes: impl AsRef<[u8]>) -> Case {
    sends(name, "GET /a HTTP/1.1\r\nHost: t\r\n\r\n").engine([reply(bytes)])
}

pub(crate) fn say(bytes: impl AsRef<[u8]>) -> Client {
    Client::Send(bytes.as_ref().to_vec())
}

pub(crate) fn reply(bytes: impl AsRef<[u8]>) -> Engine {
    Engine::Send(bytes.as_ref().to_vec())
}

impl Case {
    /// The engine does this instead.
    pub(crate) fn engine(mut self, engine: impl Into<Vec<Engine>>) -> Self {
        self.engine = engine.into();
        self
    }

    /// The engine does this after that.
    pub(crate) fn then(mut self, next: Engine) -> Self {
        self.engine.push(next);
        self
    }

    pub(crate) fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    pub(crate) fn times(mut self, answers: usize) -> Self {
        self.answers = answers;
        self
    }

    pub(crate) fn resting(mut self, rest: u64) -> Self {
        self.rest = rest;
        self
    }

    pub(crate) fn impatient(mut self) -> Self {
        self.is_impatient = true;
        self
    }

    pub(crate) fn because(mut self, reason: &'static str) -> Self {
        self.because = Some(reason);
        self
    }

    /// Whether the answers have no body because of the request's method.
    pub(crate) fn asks_for_head(&self) -> bool {
        matches!(self.client.first(), Some(Client::Send(bytes)) if bytes.starts_with(b"HEAD "))
    }

    /// Whether the client goes without reading.
    pub(crate) fn leaves(&self) -> bool {
        matches!(self.client.last(), Some(Client::Leave | Client::Reset))
    }

    /// Whether the client shuts down its sending side.
    pub(crate) fn half_closes(&self) -> bool {
        matches!(self.client.last(), Some(Client::HalfClose))
    }
}
