//! The entries and their families.

use core::fmt;

use super::gaps::Gap;
use super::*;

/// One kernel entry as the host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the PTX.
    pub name: &'static str,
    /// Bytes of its one parameter.
    pub param_bytes: usize,
    /// Alignment of its one parameter, in bytes.
    pub param_align: usize,
    /// The compute capability that it needs, major and minor.
    pub capability: (u32, u32),
}

/// The number of an entry in [`ENTRIES`]. A plan keeps it, so a launch searches for nothing.
/// Displays as the entry's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryId(usize);

impl EntryId {
    /// Returns all entries.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..COUNT).map(Self)
    }

    /// Returns the entry that does the same with hints to the L2 cache, if there is one and a
    /// device of this compute capability supports it; else itself.
    pub fn hinted(self, capability: (u32, u32)) -> Self {
        let hinted = HINTED[self.0];
        if capability >= hinted.entry().capability { hinted } else { self }
    }

    /// Returns whether it gives hints to the L2 cache.
    pub const fn is_hinted(self) -> bool {
        KEYS[self.0].0 & Key::HINTED.0 != 0
    }

    /// Returns its position in [`ENTRIES`].
    pub const fn place(self) -> usize {
        self.0
    }

    /// Returns the entry.
    pub const fn entry(self) -> &'static Entry {
        &ENTRIES[self.0]
    }

    /// Returns the values of its axes.
    pub const fn key(self) -> Key {
        KEYS[self.0]
    }

    /// Returns its name in the PTX.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The lowest compute capability that entries support; the kernels are compiled for it.
pub const OLDEST: (u32, u32) = (7, 5);
/// The lowest compute capability of entries with hints to the L2 cache: PTX has eviction policies
/// from `sm_80` on.
const HINTED_CAPABILITY: (u32, u32) = (8, 0);

/// Index arithmetic of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// Offsets fit in 31 bits: the common case, and the faster one.
    Narrow,
    /// Offsets of 2^31 elements and more.
    Wide,
}

/// The element widths in bytes that kernels support.
pub const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

/// One family: a line of the table.
pub(super) struct Line {
    stem: &'static str,
    param_bytes: usize,
    param_align: usize,
    /// The lists of axes; each axis has its values.
    pub(super) products: &'static [&'static [&'static [Value]]],
    pub(super) gaps: &'static [Gap],
}

/// A value of an axis.
pub(super) struct Value {
    suffix: &'static str,
    /// The bits of its axis in keys.
    pub(super) axis: u32,
    pub(super) key: Key,
}

/// The values of an entry's axes, which identify it within its family. The defaults are narrow
/// arithmetic and no hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub(super) u32);

impl Key {
    /// The key of a family's only entry.
    pub const ONLY: Self = Self(0);
    /// With hints to the L2 cache.
    const HINTED: Self = Self(1 << 31);

    /// Elements of this number of bytes.
    pub const fn width(bytes: usize) -> Self {
        Self(if bytes <= 16 { bytes as u32 } else { 31 })
    }

    /// Index arithmetic.
    pub const fn index(index: Index) -> Self {
        Self((index as u32) << 30)
    }

    /// Elements of this type.
    pub const fn dtype(dtype: DType) -> Self {
        Self::of(dtype, 5)
    }

    /// The types of source and destination.
    pub const fn types(src: DType, dst: DType) -> Self {
        Self::of(src, 9).and(Self::of(dst, 13))
    }

    /// Channels, at most 7.
    pub const fn channels(channels: usize) -> Self {
        Self((if channels < 8 { channels as u32 } else { 0 }) << 17)
    }

    /// Vectors that a thread moves, at most 15.
    pub const fn steps(steps: u32) -> Self {
        Self((if steps < 16 { steps } else { 0 }) << 20)
    }

    /// Adds the values of another key.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn of(dtype: DType, bit: u32) -> Self {
        Self((dtype as u32 + 1) << bit)
    }
}

/// A value of an axis, in the table's spelling.
macro_rules! key {
    (W B8) => {
        Key::width(1)
    };
    (W B16) => {
        Key::width(2)
    };
    (W B32) => {
        Key::width(4)
    };
    (W B64) => {
        Key::width(8)
    };
    (W B128) => {
        Key::width(16)
    };
    (I $index:ident) => {
        Key::index(Index::$index)
    };
    (C Unhinted) => {
        Key::ONLY
    };
    (C Hinted) => {
        Key::HINTED
    };
    (T $type:ident) => {
        Key::of(dtype!($type), 5)
    };
    (S $type:ident) => {
        Key::of(dtype!($type), 9)
    };
    (D $type:ident) => {
        Key::of(dtype!($type), 13)
    };
    (N $channels:literal) => {
        Key::channels($channels)
    };
    (X $steps:literal) => {
        Key::steps($steps)
    };
}

/// The bits of an axis in keys.
macro_rules! axis {
    (W) => {
        0x1f
    };
    (T) => {
        0xf << 5
    };
    (S) => {
        0xf << 9
    };
    (D) => {
        0xf << 13
    };
    (N) => {
        0x7 << 17
    };
    (X) => {
        0xf << 20
    };
    (I) => {
        1 << 30
    };
    (C) => {
        1 << 31
    };
}

macro_rules! value {
    ($axis:ident $value:tt) => {
        Value { suffix: suffix!($axis $value), axis: axis!($axis), key: key!($axis $value) }
    };
}

macro_rules! dtype {
    (u8) => {
        DType::U8
    };
    (i8) => {
        DType::I8
    };
    (u16) => {
        DType::U16
    };
    (i16) => {
        DType::I16
    };
    (u32) => {
        DType::U32
    };
    (i32) => {
        DType::I32
    };
    (f32) => {
        DType::F32
    };
    (u64) => {
        DType::U64
    };
    (i64) => {
        DType::I64
    };
    (f64) => {
        DType::F64
    };
    ($half:ident) => {
        DType::$half
    };
}

macro_rules! lines {
    ($($(#[$doc:meta])* $family:ident $stem:ident($params:ident)
        $(for $($($kind:tt $axis:ident in [$($value:tt)*]),+)and+)?
        $(except $($gap:ident in [$($without:tt)*]),+ because $reason:literal)* = $body:expr;)*) => {
        /// The lines of the table by their names.
        #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
        enum Number { $($family),* }
        pub(super) const LINES: &[Line] = &[$(Line {
            stem: stringify!($stem),
            param_bytes: size_of::<$params>(),
            param_align: align_of::<$params>(),
            products: &[$($(&[$(&[$(value!($axis $value)),*]),+]),+)?],
            gaps: &[$(Gap { values: &[$(&[$(value!($gap $without)),*]),+], reason: $reason }),*],
        }),*];
        $($(#[$doc])* pub const $family: Family = Family(Number::$family as usize);)*
    };
}

families! { lines }

/// The entries of one line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family(pub(super) usize);

impl Family {
    /// Returns all families, in the table's order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LINES.len()).map(Self)
    }

    /// Returns the start of its entries' names, which is also the name of its file in `src/ptx`.
    pub const fn stem(self) -> &'static str {
        LINES[self.0].stem
    }

    /// Returns the entry with this key; `None` if the family has a gap there, which
    /// [`gap`](Self::gap) explains.
    pub const fn find(self, key: Key) -> Option<EntryId> {
        let mut place = FIRST[self.0];
        while place < FIRST[self.0 + 1] {
            if KEYS[place].0 == key.0 {
                return Some(EntryId(place));
            }
            place += 1;
        }
        None
    }

    /// Returns the entry with this key in a family without a gap there.
    pub const fn get(self, key: Key) -> EntryId {
        match self.find(key) {
            Some(entry) => entry,
            None => panic!("the table of kernels has a gap"),
        }
    }

    /// Returns whether an entry belongs to the family.
    pub const fn has(self, entry: EntryId) -> bool {
        FIRST[self.0] <= entry.0 && entry.0 < FIRST[self.0 + 1]
    }

    /// Returns the entry for elements of `width` bytes, or `None` if the family has none.
    #[inline]
    pub const fn entry(self, width: usize, index: Index) -> Option<EntryId> {
        match width {
            1 | 2 | 4 | 8 | 16 => BY_WIDTH[self.0][width.trailing_zeros() as usize][index as usize],
            _ => None,
        }
    }

    /// Returns the entries, in the table's order.
    pub fn entries(self) -> impl ExactSizeIterator<Item = EntryId> {
        (FIRST[self.0]..FIRST[self.0 + 1]).map(EntryId)
    }
}

/// Counts the entries of a line.
const fn count(line: &Line) -> usize {
    let (mut all, mut product) = (if line.products.is_empty() { 1 } else { 0 }, 0);
    while product < line.products.len() {
        all += combinations(line.products[product]);
        product += 1;
    }
    all
}

const fn combinations(axes: &[&[Value]]) -> usize {
    let (mut all, mut axis) = (1, 0);
    while axis < axes.len() {
        all *= axes[axis].len();
        axis += 1;
    }
    all
}

/// The position of each line's first entry, and the end of the last line.
static FIRST: [usize; LINES.len() + 1] = {
    let (mut first, mut line) = ([0; LINES.len() + 1], 0);
    while line < LINES.len() {
        first[line + 1] = first[line] + count(&LINES[line]);
        line += 1;
    }
    first
};

const COUNT: usize = FIRST[LINES.len()];

/// Bytes of a name, at most.
const NAME_BYTES: usize = 40;

/// An entry's name while it is built, and its key.
#[derive(Clone, Copy)]
struct Made {
    name: [u8; NAME_BYTES],
    len: usize,
    key: Key,
}

impl Made {
    const fn with(mut self, text: &str, key: Key) -> Self {
        let mut at = 0;
        while at < text.len() {
            self.name[self.len] = text.as_bytes()[at];
            self.len += 1;
            at += 1;
        }
        self.key = self.key.and(key);
        self
    }

    const fn text(&self) -> &str {
        match core::str::from_utf8(self.name.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => panic!("the table is text"),
        }
    }
}

/// Builds the entry with this number in a line: the first axis changes fastest.
const fn made(line: &Line, mut number: usize) -> Made {
    let mut made = Made { name: [0; NAME_BYTES], len: 0, key: Key::ONLY }.with(line.stem, Key::ONLY);
    let mut product = 0;
    while product < line.products.len() {
        let axes = line.products[product];
        if number < combinations(axes) {
            let mut axis = 0;
            while axis < axes.len() {
                let value = &axes[axis][number % axes[axis].len()];
                made = made.with(value.suffix, value.key);
                number /= axes[axis].len();
                axis += 1;
            }
            return made;
        }
        number -= combinations(axes);
        product += 1;
    }
    made
}

static MADE: [Made; COUNT] = {
    let mut all = [Made { name: [0; NAME_BYTES], len: 0, key: Key::ONLY }; COUNT];
    let mut line = 0;
    while line < LINES.len() {
        let mut place = FIRST[line];
        while place < FIRST[line + 1] {
            all[place] = made(&LINES[line], place - FIRST[line]);
            place += 1;
        }
        line += 1;
    }
    all
};

/// The keys of [`ENTRIES`].
static KEYS: [Key; COUNT] = {
    let (mut keys, mut place) = ([Key::ONLY; COUNT], 0);
    while place < COUNT {
        keys[place] = MADE[place].key;
        place += 1;
    }
    keys
};

/// Every entry of the module, with the parameter that the host passes.
pub const ENTRIES: &[Entry] = &{
    let mut all = [Entry { name: "", param_bytes: 0, param_align: 0, capability: OLDEST }; COUNT];
    let mut line = 0;
    while line < LINES.len() {
        let Line { param_bytes, param_align, .. } = LINES[line];
        let mut place = FIRST[line];
        while place < FIRST[line + 1] {
            let capability = if EntryId(place).is_hinted() { HINTED_CAPABILITY } else { OLDEST };
            all[place] = Entry { name: MADE[place].text(), param_bytes, param_align, capability };
            place += 1;
        }
        line += 1;
    }
    all
};

/// The results of [`Family::find`] by width and index, for plans that take a hundred nanoseconds.
static BY_WIDTH: [[[Option<EntryId>; 2]; WIDTHS.len()]; LINES.len()] = {
    let (mut found, mut line) = ([[[None; 2]; WIDTHS.len()]; LINES.len()], 0);
    while line < LINES.len() {
        let mut width = 0;
        while width < WIDTHS.len() {
            let key = Key::width(WIDTHS[width]);
            found[line][width] = [
                Family(line).find(key.and(Key::index(Index::Narrow))),
                Family(line).find(key.and(Key::index(Index::Wide))),
            ];
            width += 1;
        }
        line += 1;
    }
    found
};

/// For each of [`ENTRIES`], the entry of its family with hints, or itself.
static HINTED: [EntryId; COUNT] = {
    let (mut hinted, mut line) = ([EntryId(0); COUNT], 0);
    while line < LINES.len() {
        let mut place = FIRST[line];
        while place < FIRST[line + 1] {
            hinted[place] = match Family(line).find(KEYS[place].and(Key::HINTED)) {
                Some(hinted) => hinted,
                None => EntryId(place),
            };
            place += 1;
        }
        line += 1;
    }
    hinted
};
