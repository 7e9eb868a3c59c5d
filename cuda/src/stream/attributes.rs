//! Attributes of streams.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, PoisonError};

use super::{GREATEST_PRIORITY, Stream, stream};
use crate::arguments::{Handle, In, Out};
use crate::code::{Failure, Outcome};
use crate::export::export;

/// The bytes of an attribute's value.
type Value = [u8; 64];

/// The attributes that streams have: the window of the L2 cache, how a thread waits, the priority,
/// and the domains of memory.
const WINDOW: c_uint = 1;
const POLICY: c_uint = 3;
const PRIORITY: c_uint = 8;
const DOMAIN_MAP: c_uint = 9;
const DOMAIN: c_uint = 10;

/// The attributes that programs have set, by stream and attribute. The software GPU keeps them and
/// does nothing with them.
static SET: Mutex<Option<HashMap<(u64, c_uint), Value>>> = Mutex::new(None);

fn with_set<T>(use_it: impl FnOnce(&mut HashMap<(u64, c_uint), Value>) -> T) -> T {
    use_it(SET.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Forgets what was set for a stream.
pub(super) fn end_of(stream: &Stream) {
    with_set(|set| set.retain(|(of, _), _| *of != stream.soft.0));
}

fn check(attribute: c_uint) -> Outcome {
    match attribute {
        WINDOW | POLICY | PRIORITY | DOMAIN_MAP | DOMAIN => Ok(()),
        _ => {
            Err(Failure::value(format!("{attribute} is not an attribute of a stream; CUDA's documentation lists them")))
        }
    }
}

/// Returns what an attribute begins with.
fn default_of(stream: &Stream, attribute: c_uint) -> Value {
    let mut value = [0; 64];
    match attribute {
        POLICY => value[0] = 1,
        PRIORITY => value[..4].copy_from_slice(&stream.priority.to_ne_bytes()),
        // The remote domain is 1.
        DOMAIN_MAP => value[1] = 1,
        _ => {}
    }
    value
}

export! {
    /// Returns an attribute of a stream.
    fn cuStreamGetAttribute, per_thread cuStreamGetAttribute_ptsz (
        on: Handle<Stream>, attribute: c_uint, value: Out<Value>,
    ) {
        check(attribute)?;
        let stream = stream(on)?;
        let set = with_set(|set| set.get(&(stream.soft.0, attribute)).copied());
        value.set(set.unwrap_or_else(|| default_of(&stream, attribute)))
    }

    /// Sets an attribute of a stream, which changes nothing on the software GPU.
    fn cuStreamSetAttribute, per_thread cuStreamSetAttribute_ptsz (
        on: Handle<Stream>, attribute: c_uint, value: In<Value>,
    ) {
        check(attribute)?;
        let (stream, mut value) = (stream(on)?, value.get()?);
        if attribute == PRIORITY {
            let [a, b, c, d, ..] = value;
            let priority = c_int::from_ne_bytes([a, b, c, d]).clamp(GREATEST_PRIORITY, 0);
            value[..4].copy_from_slice(&priority.to_ne_bytes());
        }
        with_set(|set| set.insert((stream.soft.0, attribute), value));
        Ok(())
    }

    /// Copies the attributes of a stream to another one.
    fn cuStreamCopyAttributes, per_thread cuStreamCopyAttributes_ptsz (to: Handle<Stream>, from: Handle<Stream>) {
        let (to, from) = (stream(to)?, stream(from)?);
        with_set(|set| {
            let copied: Vec<_> = set
                .iter()
                .filter(|((of, _), _)| *of == from.soft.0)
                .map(|(&(_, attribute), &value)| ((to.soft.0, attribute), value))
                .collect();
            set.extend(copied);
        });
        Ok(())
    }
}
