//! Objects of programs that graphs keep: a function of the host is called once nothing keeps an
//! object any more.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Graph, HostFunction, graph, graphs};
use crate::arguments::{Handle, Opaque, Out};
use crate::code::{Failure, Outcome};
use crate::export::{export, within_work};
use crate::stream::given;

/// An object, with the references of the program and those of graphs.
pub(crate) struct UserObject {
    data: Opaque,
    destroy: HostFunction,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    of_program: u64,
    of_graphs: u64,
}

/// The references of one graph; a copy has references of its own.
#[derive(Default)]
pub(super) struct Retained(Vec<Reference>);

/// References of a graph to one object.
struct Reference {
    object: Arc<UserObject>,
    handle: Handle<UserObject>,
    count: u64,
}

impl UserObject {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the counts, and destroys the object if nothing keeps it any more.
    fn change(&self, handle: Handle<UserObject>, change: impl FnOnce(&mut Counts) -> Outcome) -> Outcome {
        let mut counts = self.lock();
        change(&mut counts)?;
        let is_unused = counts.of_program == 0 && counts.of_graphs == 0;
        drop(counts);
        if is_unused && graphs()?.objects.remove(handle).is_ok() {
            let (function, data) = (self.destroy, self.data);
            within_work(|| {
                // SAFETY: the program promised a function that takes this data, once, when no
                // reference is left.
                unsafe { function(data) }
            });
        }
        Ok(())
    }
}

impl Clone for Reference {
    fn clone(&self) -> Self {
        self.object.lock().of_graphs += self.count;
        Self { object: Arc::clone(&self.object), ..*self }
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let count = self.count;
        let _ = self.object.change(self.handle, |counts| {
            counts.of_graphs -= count;
            Ok(())
        });
    }
}

impl Clone for Retained {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

fn check_count(count: c_uint) -> Outcome<u64> {
    if count == 0 || count > c_uint::MAX / 2 {
        return Err(Failure::value(format!(
            "{count} is not a number of references; pass from 1 to {}",
            c_uint::MAX / 2
        )));
    }
    Ok(count.into())
}

fn object(handle: Handle<UserObject>) -> Outcome<Arc<UserObject>> {
    graphs()?.objects.get(handle).map_err(super::as_value)
}

/// Takes references of the program away.
fn release(counts: &mut Counts, count: u64) -> Outcome {
    let left = counts.of_program.checked_sub(count).ok_or_else(|| {
        Failure::value(format!("the program has {} references and releases {count}", counts.of_program))
    })?;
    counts.of_program = left;
    Ok(())
}

export! {
    /// Makes an object, which `destroy` ends once nothing refers to it any more.
    fn cuUserObjectCreate(
        made: Out<Handle<UserObject>>, data: Opaque, destroy: Option<HostFunction>, count: c_uint, flags: c_uint,
    ) {
        made.check()?;
        let (destroy, of_program) = (given(destroy)?, check_count(count)?);
        if flags != 1 {
            return Err(Failure::value(format!("the flags of a user object must be 1, and are {flags:#x}")));
        }
        let counts = Mutex::new(Counts { of_program, of_graphs: 0 });
        made.set(graphs()?.objects.add(UserObject { data, destroy, counts }))
    }

    /// Adds references of the program to an object.
    fn cuUserObjectRetain(handle: Handle<UserObject>, count: c_uint) {
        let count = check_count(count)?;
        object(handle)?.change(handle, |counts| {
            counts.of_program += count;
            Ok(())
        })
    }

    /// Takes references of the program to an object away.
    fn cuUserObjectRelease(handle: Handle<UserObject>, count: c_uint) {
        let count = check_count(count)?;
        object(handle)?.change(handle, |counts| release(counts, count))
    }

    /// Lets a graph refer to an object; with flag 1, the references are the program's ones.
    fn cuGraphRetainUserObject(of: Handle<Graph>, handle: Handle<UserObject>, count: c_uint, flags: c_uint) {
        let (graph, object, count) = (graph(of)?, object(handle)?, check_count(count)?);
        if flags > 1 {
            let why = format!("{flags:#x} are not flags: 0 adds references, and 1 moves the program's");
            return Err(Failure::value(why));
        }
        object.change(handle, |counts| {
            if flags == 1 {
                release(counts, count)?;
            }
            counts.of_graphs += count;
            Ok(())
        })?;
        graph.lock().objects.0.push(Reference { object, handle, count });
        Ok(())
    }

    /// Ends references of a graph to an object.
    fn cuGraphReleaseUserObject(of: Handle<Graph>, handle: Handle<UserObject>, count: c_uint) {
        let (graph, count) = (graph(of)?, check_count(count)?);
        let mut inner = graph.lock();
        let own: u64 = inner.objects.0.iter().filter(|known| known.handle == handle).map(|known| known.count).sum();
        let Some(left) = own.checked_sub(count) else {
            return Err(Failure::value(format!("the graph has {own} references to {handle:?} and releases {count}")));
        };
        let (ended, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut inner.objects.0).into_iter().partition(|known| known.handle == handle);
        if left > 0
            && let Some(first) = ended.first()
        {
            let mut rest = first.clone();
            rest.object.lock().of_graphs += left;
            rest.object.lock().of_graphs -= rest.count;
            rest.count = left;
            kept.push(rest);
        }
        inner.objects.0 = kept;
        drop(inner);
        // The object may end here, so the graph is unlocked.
        drop(ended);
        Ok(())
    }
}
