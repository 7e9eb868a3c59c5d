//! The weights of the estimates by which plans choose, as `bench --tune` fits them to a GPU.

use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Mutex;

use super::{Lines, value};
use crate::abi::WIDTHS;
use crate::sync::lock;

/// Most bytes of the text of a line's weights.
const LONGEST: usize = 128;

/// Lists the kernels whose times are estimated, each with its table of weights and the costs that
/// these weigh.
macro_rules! weights {
    ($($(#[$doc:meta])* $kernel:ident $table:ident $costs:literal)+) => {
        /// A kernel whose time is estimated, relative to a copy: the sum of its costs, each by its
        /// weight.
        #[doc(hidden)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Estimated {
            $($(#[$doc])* $kernel,)+
        }

        impl Estimated {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kernel),+];

            /// Returns the name in reports and in the user's tuning file.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kernel => stringify!($table),)+
                }
            }
        }

        /// The weights of every kernel, by the base-2 logarithm of the elements' width. None is
        /// less than 0.
        #[doc(hidden)]
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Weights {
            $($(#[$doc])* pub(crate) $table: [[f64; $costs]; WIDTHS.len()],)+
        }

        impl Weights {
            /// Weights that are all 0, to be filled in.
            pub(super) const NONE: Self = Self { $($table: [[0.0; $costs]; WIDTHS.len()],)+ };

            /// Returns the weights of a kernel.
            pub fn of_kernel(&self, kernel: Estimated, width_log2: usize) -> &[f64] {
                match kernel {
                    $(Estimated::$kernel => &self.$table[width_log2],)+
                }
            }

            /// Returns the weights of a kernel, to replace them.
            pub fn of_kernel_mut(&mut self, kernel: Estimated, width_log2: usize) -> &mut [f64] {
                match kernel {
                    $(Estimated::$kernel => &mut self.$table[width_log2],)+
                }
            }
        }

        /// Most costs of a kernel.
        pub(crate) const MOST_COSTS: usize = {
            let mut most = 0;
            $(if $costs > most { most = $costs })+
            most
        };
    };
}

weights! {
    /// Tiles of whole vectors: a constant, empty micro-tiles, short runs of the source, rows of the
    /// source that start between lines of the L2 cache.
    WholeTiles whole_tiles 4
    /// Ragged tiles: a constant, empty micro-tiles, those of the halo, short rows of the
    /// destination, short runs of the source.
    RaggedTiles ragged_tiles 5
    /// Structs: a constant, idle bytes, short fields of a block, words in place of vectors.
    Fields fields 4
    /// Tiles of several axes by vectors: a constant, split runs of the source and of the
    /// destination, empty parts of tiles, lanes that share a bank, short runs of the source.
    Quads quads 6
    /// Boxes: all boxes by their model, their memory alone, and shared sectors of the destination,
    /// which count against the other two and so are less than 0.
    Boxes boxes 3
    /// Shifted runs: a constant, short runs.
    Rows rows 2
    /// Elements one by one: a constant, short runs, and sides whose nearest axes differ. The last
    /// weight is of arrays that the L2 cache holds.
    Elements elements 3
}

impl Estimated {
    /// Returns the number of its weights that `bench --tune` fits, which are the first ones. The
    /// last one of elements is of arrays that the L2 cache holds, and it times larger ones.
    pub fn fitted(self) -> usize {
        let all = Weights::NONE.of_kernel(self, 0).len();
        if self == Self::Elements { all - 1 } else { all }
    }
}

impl Weights {
    /// The largest weight of a tuning file.
    pub const LARGEST: f64 = 1000.0;

    /// Reads the lines of a section, all of which are there, in order.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, String> {
        let mut weights = Self::NONE;
        for (kernel, width_log2, width) in each() {
            let (key, own) = (key(kernel, width), weights.of_kernel_mut(kernel, width_log2));
            let text = value(lines.next(), &key)?;
            let read: Option<Vec<f64>> = text.split(' ').take(MOST_COSTS + 1).map(weight).collect();
            let read = read.filter(|read| read.len() == own.len() && text.len() <= LONGEST);
            let wrong = || {
                // A long text would hide the reason.
                let start: String = text.chars().take(LONGEST).collect();
                format!(
                    "{key} is `{}`, not {} weights from 0 to {} in digits",
                    start.escape_debug(),
                    own.len(),
                    Self::LARGEST
                )
            };
            let read = read.ok_or_else(wrong)?;
            own.copy_from_slice(&read);
        }
        Ok(weights)
    }

    /// Returns the lines of a section.
    pub(super) fn text(&self) -> String {
        let line = |(kernel, width_log2, width)| {
            let weights = self.of_kernel(kernel, width_log2).iter().map(f64::to_string).collect::<Vec<_>>();
            format!("{} = {}\n", key(kernel, width), weights.join(" "))
        };
        each().map(line).collect()
    }
}

/// Returns every kernel with every width.
fn each() -> impl Iterator<Item = (Estimated, usize, usize)> {
    let widths = |&kernel| WIDTHS.into_iter().enumerate().map(move |(log2, width)| (kernel, log2, width));
    Estimated::ALL.iter().flat_map(widths)
}

fn key(kernel: Estimated, width: usize) -> String {
    format!("{}_{width}", kernel.name())
}

/// Reads a weight. The standard library would also read signs, exponents and words, and points
/// without a digit before them, by which a line could become longer.
fn weight(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !text.starts_with('.');
    let weight = is_plain.then(|| text.parse::<f64>().ok())?;
    weight.filter(|weight| (0.0..=Weights::LARGEST).contains(weight))
}

/// The weights of a GPU, as a value that can be copied and compared: a place of memory that never
/// changes, so that plans read it without a lock.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct TunedWeights(&'static Weights);

/// Equal weights have one place, which stays until the program ends, because any copy of it may
/// outlive the device.
static KNOWN: Mutex<Vec<&'static Weights>> = Mutex::new(Vec::new());

impl TunedWeights {
    /// Returns the place of weights.
    pub fn of(weights: &Weights) -> Self {
        let mut known = lock(&KNOWN);
        if let Some(known) = known.iter().find(|known| **known == weights) {
            return Self(known);
        }
        let kept: &'static Weights = Box::leak(Box::new(*weights));
        known.push(kept);
        Self(kept)
    }

    /// Returns the weights.
    pub(crate) fn weights(self) -> &'static Weights {
        self.0
    }
}

impl PartialEq for TunedWeights {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for TunedWeights {}

impl Hash for TunedWeights {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self.0, state);
    }
}
