//! The messages between rank 0 and the other ranks, as frames of bytes.
//!
//! A frame is the length of its body in two bytes, one byte for the kind, and the body. Numbers are
//! little-endian. The length and the kind of a hello, and the first twelve bytes of its body, stay
//! the same in every version.

use crate::error::printable_line;

/// The first bytes of a hello and of an admission. A program that speaks another protocol does not
/// send them.
const MAGIC: [u8; 8] = *b"WARPMEET";
/// The version of the protocol. Ranks of one job have the same.
pub(super) const VERSION: u32 = 1;
/// The most bytes of a payload, of a token or of a text.
pub(super) const MOST: usize = 4096;
/// The most bytes of a body: a payload and the numbers before it.
const MOST_BODY: usize = MOST + 48;
/// The bytes of a length and a kind.
const HEAD: usize = 3;

/// An operation of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Barrier,
    /// The bytes of rank 0; those of other ranks are empty.
    Broadcast(Vec<u8>),
    Agree {
        digest: u64,
        about: String,
    },
}

/// The reason why an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Deadline,
    Peer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// A rank asks rank 0 to be admitted.
    Hello {
        ranks: u32,
        rank: u32,
        /// The number in the file of the rendezvous, or 0.
        nonce: u128,
        /// A number of the process, which it repeats when it tries again.
        process: u64,
        token: Vec<u8>,
    },
    /// A rank of another version asks.
    OtherVersion(u32),
    Admitted,
    /// Rank 0 refuses a rank, which may try `again` elsewhere.
    Refused {
        again: bool,
        reason: String,
    },
    /// All ranks have come.
    Complete,
    /// A rank enters its operation of this number.
    Enter {
        number: u64,
        call: Call,
    },
    Done {
        number: u64,
        payload: Vec<u8>,
    },
    Failed {
        number: u64,
        failure: Failure,
        reason: String,
    },
    /// The sender cannot go on.
    Abort(String),
    Lost {
        rank: u32,
        reason: String,
    },
    /// The sender closes its connection in order.
    Goodbye,
}

/// Bytes that are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

impl Message {
    pub(super) fn hello(ranks: usize, rank: usize, nonce: u128, process: u64, token: &str) -> Self {
        // `Rendezvous` bounds the number of ranks.
        Self::Hello { ranks: ranks as u32, rank: rank as u32, nonce, process, token: token.as_bytes().to_vec() }
    }

    /// The bytes of the frame. Texts and payloads are cut at [`MOST`] bytes.
    pub(super) fn frame(&self) -> Vec<u8> {
        let (kind, body) = self.body();
        debug_assert!(body.len() <= MOST_BODY);
        [&(body.len() as u16).to_le_bytes()[..], &[kind], &body].concat()
    }

    fn body(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Hello { ranks, rank, nonce, process, token } => {
                let numbers = [VERSION, *ranks, *rank].map(u32::to_le_bytes).concat();
                (1, [&MAGIC[..], &numbers, &nonce.to_le_bytes(), &process.to_le_bytes(), cut(token)].concat())
            }
            Self::OtherVersion(version) => (1, [&MAGIC[..], &version.to_le_bytes()].concat()),
            Self::Admitted => (2, MAGIC.to_vec()),
            Self::Refused { again, reason } => (3, [&[(*again).into()], cut(reason.as_bytes())].concat()),
            Self::Complete => (4, Vec::new()),
            Self::Enter { number, call } => {
                let (kind, call) = match call {
                    Call::Barrier => (0, Vec::new()),
                    Call::Broadcast(payload) => (1, cut(payload).to_vec()),
                    Call::Agree { digest, about } => (2, [&digest.to_le_bytes()[..], cut(about.as_bytes())].concat()),
                };
                (5, [&number.to_le_bytes()[..], &[kind], &call].concat())
            }
            Self::Done { number, payload } => (6, [&number.to_le_bytes()[..], cut(payload)].concat()),
            Self::Failed { number, failure, reason } => {
                let failure = (*failure == Failure::Peer).into();
                (7, [&number.to_le_bytes()[..], &[failure], cut(reason.as_bytes())].concat())
            }
            Self::Abort(reason) => (8, cut(reason.as_bytes()).to_vec()),
            Self::Lost { rank, reason } => (9, [&rank.to_le_bytes()[..], cut(reason.as_bytes())].concat()),
            Self::Goodbye => (10, Vec::new()),
        }
    }

    /// Reads the body of a frame of a kind.
    fn parse(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        let mut body = Body(body);
        let message = match kind {
            1 => {
                body.magic()?;
                let version = u32::from_le_bytes(body.array()?);
                if version != VERSION {
                    // The rest may have another form.
                    return Ok(Self::OtherVersion(version));
                }
                let [ranks, rank] = [u32::from_le_bytes(body.array()?), u32::from_le_bytes(body.array()?)];
                let (nonce, process) = (u128::from_le_bytes(body.array()?), body.number()?);
                Self::Hello { ranks, rank, nonce, process, token: body.rest()?.to_vec() }
            }
            2 => {
                body.magic()?;
                Self::Admitted
            }
            3 => Self::Refused { again: body.flag()?, reason: body.text()? },
            4 => Self::Complete,
            5 => {
                let number = body.number()?;
                let [kind] = body.array()?;
                let call = match kind {
                    0 => Call::Barrier,
                    1 => Call::Broadcast(body.rest()?.to_vec()),
                    2 => Call::Agree { digest: body.number()?, about: body.text()? },
                    _ => return Err(Malformed),
                };
                Self::Enter { number, call }
            }
            6 => Self::Done { number: body.number()?, payload: body.rest()?.to_vec() },
            7 => {
                let number = body.number()?;
                let failure = if body.flag()? { Failure::Peer } else { Failure::Deadline };
                Self::Failed { number, failure, reason: body.text()? }
            }
            8 => Self::Abort(body.text()?),
            9 => Self::Lost { rank: u32::from_le_bytes(body.array()?), reason: body.text()? },
            10 => Self::Goodbye,
            _ => return Err(Malformed),
        };
        if body.0.is_empty() { Ok(message) } else { Err(Malformed) }
    }
}

fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MOST)]
}

/// The part of a body that is not read yet.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    fn magic(&mut self) -> Result<(), Malformed> {
        if self.array()? == MAGIC { Ok(()) } else { Err(Malformed) }
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [flag @ (0 | 1)] => Ok(flag == 1),
            _ => Err(Malformed),
        }
    }

    fn rest(&mut self) -> Result<&'a [u8], Malformed> {
        let rest = std::mem::take(&mut self.0);
        if rest.len() <= MOST { Ok(rest) } else { Err(Malformed) }
    }

    /// The rest as a text that a terminal may show. A character that was cut is replaced.
    fn text(&mut self) -> Result<String, Malformed> {
        Ok(printable_line(&String::from_utf8_lossy(self.rest()?)))
    }
}

/// The bytes that have come from a peer, and the frames in them.
#[derive(Debug, Default)]
pub(super) struct Frames(Vec<u8>);

impl Frames {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Returns the next message if it has come whole.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Malformed> {
        let Some(&[low, high, kind]) = self.0.first_chunk::<HEAD>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes([low, high]));
        if length > MOST_BODY {
            return Err(Malformed);
        }
        let Some(body) = self.0.get(HEAD..HEAD + length) else { return Ok(None) };
        let message = Message::parse(kind, body)?;
        self.0.drain(..HEAD + length);
        Ok(Some(message))
    }
}

/// Reads any bytes as frames, for a fuzz target. Returns the number of messages before the first
/// bytes that are not a frame.
#[doc(hidden)]
pub fn check_frames(bytes: &[u8]) -> usize {
    let mut frames = Frames::default();
    frames.add(bytes);
    std::iter::from_fn(|| frames.next().ok().flatten()).inspect(|message| drop(message.frame())).count()
}

#[cfg(test)]
mod tests;
