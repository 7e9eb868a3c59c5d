//! Files: NumPy's arrays, and outputs that are replaced whole or not at all.
//!
//! [`npy`] needs no other crate; [`Destination`] takes `tempfile` and `same-file`,
//! which know more file systems than we do. Errors are of the kind `Io` unless an item says
//! otherwise, and name the path.

mod array_file;
pub mod npy;
mod replace;
mod stamp;

pub use array_file::{ArrayFile, open_array};
use replace::io_error;
pub use replace::{Destination, remove_unfinished_and};
#[doc(hidden)]
pub use replace::{DestinationKind, is_same_file, write_standard_output};
pub(crate) use replace::{check_is_at, put, replaced};
pub(crate) use stamp::{Stamp, changed, check_unchanged, is_changed};
