//! Texts that were parsed before: a program launches the same kernel many times.

use std::sync::{Arc, Mutex, PoisonError};

use warpstride_interp::Module;

use crate::failure::Failure;

/// The most bytes of all kept texts. A parsed text has about ten times its size.
const MOST_BYTES: usize = 16 << 20;
/// The most kept texts: each call looks through them.
const MOST_TEXTS: usize = 256;

/// A text and what the parser made of it.
struct Known {
    text: Box<[u8]>,
    module: Arc<Module>,
}

/// The kept texts, the last used one at the end.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Returns the module of a text, which is parsed unless it is known.
pub(crate) fn module(text: &[u8]) -> Result<Arc<Module>, Failure> {
    if let Some(module) = find(text) {
        return Ok(module);
    }
    // The list is not locked meanwhile. Two threads may parse the same text, and one result stays.
    let module = Arc::new(Module::parse(&String::from_utf8_lossy(text))?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|known| *known.text != *text);
    known.push(Known { text: text.into(), module: Arc::clone(&module) });
    let kept = kept(known.iter().map(|known| known.text.len()));
    let first = known.len() - kept;
    known.drain(..first);
    Ok(module)
}

fn find(text: &[u8]) -> Option<Arc<Module>> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = known.iter().rposition(|known| *known.text == *text)?;
    known[at..].rotate_left(1);
    known.last().map(|known| Arc::clone(&known.module))
}

/// Returns how many of the last texts stay, by the sizes of all.
fn kept(sizes: impl DoubleEndedIterator<Item = usize>) -> usize {
    let mut left = MOST_BYTES;
    let fits = |size: &usize| left.checked_sub(*size).map(|rest| left = rest).is_some();
    sizes.rev().take(MOST_TEXTS).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_texts_stay_within_bounds() {
        assert_eq!(kept([1, 2, 3].into_iter()), 3);
        assert_eq!(kept([1, MOST_BYTES - 5, 3, 2].into_iter()), 3);
        assert_eq!(kept([1, MOST_BYTES - 4, 3, 2].into_iter()), 2);
        assert_eq!(kept([MOST_BYTES + 1].into_iter()), 0);
        assert_eq!(kept(std::iter::repeat_n(1, 1000)), MOST_TEXTS);
    }

    #[test]
    fn a_text_is_parsed_once_and_errors_are_not_kept() {
        let text = b".version 7.0 .target sm_80 .address_size 64 .entry k() { ret; }";
        let [first, again] = [0, 0].map(|_| module(text).ok().expect("PTX"));
        assert!(Arc::ptr_eq(&first, &again));
        assert!(module(b"garbage").is_err() && module(b"garbage").is_err());
        assert!(Arc::ptr_eq(&first, &module(text).ok().expect("PTX")));
    }
}
