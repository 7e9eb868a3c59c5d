//! Draws permutes from a seed: the cases of `bench permute --random`.
//!
//! `benches/random_permutes/README.md` describes the kinds. Only whole numbers decide a case, so a
//! seed gives the same cases on every machine.

use std::collections::HashSet;

use warpstride::element::DType;
use warpstride::error::Result;
use warpstride::layout::Layout;
use warpstride::random::SplitMix64;

/// The sort of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Extents that are powers of two or multiples of 8 or 32.
    Round,
    /// Odd extents.
    Odd,
    /// Prime extents.
    Prime,
    /// Extents of all sorts.
    Mixed,
    /// Many small matrices.
    Batch,
    /// Structs of a few fields into planes, and back.
    Structs,
    /// Images of pixels into planes, and back.
    Images,
    /// Axes that run backwards.
    Reversed,
    /// Axes that take every second, third or fourth index.
    Stepped,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 9] = [
        Self::Round,
        Self::Odd,
        Self::Prime,
        Self::Mixed,
        Self::Batch,
        Self::Structs,
        Self::Images,
        Self::Reversed,
        Self::Stepped,
    ];

    /// Its name.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// A type of each width: permutes go by width.
const TYPES: [DType; 5] = [DType::U8, DType::U16, DType::F32, DType::F64, DType::C128];

/// The bytes that an array of a case has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes at least, 1 KiB or more.
    pub(crate) least: usize,
    /// Bytes at most, 16 times `least` or more.
    pub(crate) most: usize,
}

impl Sizes {
    /// Arrays that are timed.
    pub(crate) const TIMED: Self = Self { least: 64 << 20, most: 1 << 30 };
    /// Arrays that the software GPU counts.
    pub(crate) const COUNTED: Self = Self { least: 64 << 10, most: 1 << 20 };

    fn hold(self, bytes: usize) -> bool {
        (self.least..=self.most).contains(&bytes)
    }
}

/// A permute: a view of an array in C order, whose axes go into another order, and into C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    /// Its type, shape, axes and steps; no other case of a list has this name.
    pub(crate) name: String,
    /// Its sort.
    pub(crate) kind: Kind,
    /// Type of the elements.
    pub(crate) dtype: DType,
    /// Extents of the view.
    pub(crate) shape: Vec<usize>,
    /// The axes of the view in the order of the result.
    pub(crate) axes: Vec<usize>,
    /// Along each axis, the step from index to index of the array, whose extent is that of the view
    /// times the step. A negative one starts at the last index. `None` where all are 1.
    pub(crate) steps: Option<Vec<isize>>,
}

impl Case {
    fn new(kind: Kind, dtype: DType, shape: Vec<usize>, axes: Vec<usize>, steps: Option<Vec<isize>>) -> Self {
        fn between(numbers: &[impl ToString], mark: &str) -> String {
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(mark)
        }
        let stepped = steps.as_ref().map_or(String::new(), |steps| format!(" steps {}", between(steps, ",")));
        let name = format!("{dtype} {} {}{stepped}", between(&shape, "x"), between(&axes, ""));
        Self { name, kind, dtype, shape, axes, steps }
    }

    /// Elements of the view.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The step along each axis.
    fn each_step(&self) -> Vec<isize> {
        self.steps.clone().unwrap_or_else(|| vec![1; self.shape.len()])
    }

    /// Extents of the array that the view is of.
    fn storage(&self) -> Vec<usize> {
        self.shape.iter().zip(self.each_step()).map(|(&extent, step)| extent * step.unsigned_abs()).collect()
    }

    /// Elements of the array that the view is of.
    pub(crate) fn storage_len(&self) -> usize {
        self.storage().iter().product()
    }

    /// The view with its axes in the order of the result.
    ///
    /// # Errors
    ///
    /// `Layout` or `InvalidArgument` where the members do not go together; those of
    /// [`cases`] do.
    pub(crate) fn source(&self) -> Result<Layout> {
        let whole = Layout::row_major(&self.storage())?;
        let mut steps = self.each_step().into_iter().enumerate();
        let view = steps.try_fold(whole, |view, (axis, step)| view.slice(axis, .., step))?;
        view.permuted_axes(&self.axes)
    }

    /// Returns whether it has arrays of these sizes, and is more than a copy.
    fn suits(&self, sizes: Sizes) -> bool {
        let bytes = |len| len * self.dtype.width();
        let moves = self.source().is_ok_and(|source| !source.is_standard_layout());
        sizes.hold(bytes(self.len())) && sizes.hold(bytes(self.storage_len())) && moves
    }
}

/// Draws the first `count` cases of a seed: a longer list begins with the same ones. Cases 1 to 9,
/// 10 to 18 and so on each have one of every kind.
///
/// # Panics
///
/// If `sizes` has less than 1 KiB, or its most is not 16 times its least: no case of some kinds has
/// such a size, and this would look for one without end.
pub(crate) fn cases(seed: u64, count: usize, sizes: Sizes) -> Vec<Case> {
    let Sizes { least, most } = sizes;
    assert!(least >= 1 << 10 && most / 16 >= least, "cases cannot be drawn in sizes from {least} to {most}");
    let (mut names, mut kinds) = (HashSet::new(), Kind::ALL);
    (0..count)
        .map(|place| {
            if place % kinds.len() == 0 {
                Draws(SplitMix64(SplitMix64::at(!seed, place as u64))).shuffle(&mut kinds);
            }
            let mut draws = Draws(SplitMix64(SplitMix64::at(seed, place as u64)));
            loop {
                let case = draws.case(kinds[place % kinds.len()], sizes);
                if let Some(case) = case.filter(|case| case.suits(sizes) && names.insert(case.name.clone())) {
                    return case;
                }
            }
        })
        .collect()
}

/// The sort of an extent.
#[derive(Clone, Copy)]
enum Form {
    Any,
    Round,
    Odd,
    Prime,
}

/// Draws from a seed.
struct Draws(SplitMix64);

impl Draws {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    /// Returns true in one of `chances` draws, on average.
    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// A number from `least` to `most`, where short ones are as likely as long ones: the power of
    /// two is drawn first.
    fn between(&mut self, least: usize, most: usize) -> usize {
        let power = self.below((most / least).max(1).ilog2() as usize + 1);
        ((least << power) + self.below(least << power)).min(most)
    }

    /// Puts elements in any order.
    fn shuffle<T>(&mut self, elements: &mut [T]) {
        // Fisher and Yates.
        for at in (1..elements.len()).rev() {
            elements.swap(at, self.below(at + 1));
        }
    }

    /// Bytes of an array: seven of eight in the lower half of the powers of two, since long arrays
    /// take long and say little more.
    fn bytes(&mut self, Sizes { least, most }: Sizes) -> usize {
        let powers = (most / least).ilog2() as usize;
        let lower = powers.div_ceil(2);
        let power = if self.one_in(8) { lower + self.below(powers - lower) } else { self.below(lower) };
        (least << power) + self.below(least << power)
    }

    /// A case of a kind, which may be too small, too large or a copy.
    fn case(&mut self, kind: Kind, sizes: Sizes) -> Option<Case> {
        let dtype = TYPES[self.below(TYPES.len())];
        let elements = self.bytes(sizes) / dtype.width();
        let mut steps = None;
        let (shape, axes) = match kind {
            Kind::Round => self.ordered(elements, &[Form::Round])?,
            Kind::Odd => self.ordered(elements, &[Form::Odd])?,
            Kind::Prime => self.ordered(elements, &[Form::Prime])?,
            Kind::Mixed => self.ordered(elements, &MIXED)?,
            Kind::Batch => self.batch(elements),
            Kind::Structs => self.structs(elements),
            Kind::Images => self.images(elements),
            Kind::Reversed | Kind::Stepped => {
                let (shape, axes) = self.ordered(elements, &MIXED)?;
                let drawn = if kind == Kind::Reversed { Self::backwards } else { Self::steps };
                steps = Some(drawn(self, shape.len()));
                (shape, axes)
            }
        };
        shape.iter().all(|&extent| extent > 0).then(|| Case::new(kind, dtype, shape, axes, steps))
    }

    /// An array of 2 to 8 axes and about as many elements, and its axes in any order. Each extent
    /// has one of the forms.
    fn ordered(&mut self, elements: usize, forms: &[Form]) -> Option<(Vec<usize>, Vec<usize>)> {
        let rank = 2 + self.below(7);
        let (mut shape, mut left) = (Vec::with_capacity(rank), elements);
        for others in (1..rank).rev() {
            // The others have 2 indices at least.
            let most_log2 = (left.max(1).ilog2() as usize).checked_sub(others).filter(|&log2| log2 > 0)?;
            let log2 = self.below((2 * most_log2).div_ceil(others + 1).min(most_log2));
            let near = (1 << log2) + 1 + self.below(1 << log2);
            let extent = self.extent(forms, near);
            shape.push(extent);
            left /= extent;
        }
        shape.push(self.extent(forms, left.max(2)));
        self.shuffle(&mut shape);
        let mut axes: Vec<usize> = (0..rank).collect();
        self.shuffle(&mut axes);
        Some((shape, axes))
    }

    /// An extent of one of the forms, near another of at least 2.
    fn extent(&mut self, forms: &[Form], near: usize) -> usize {
        match forms[self.below(forms.len())] {
            Form::Any => near,
            Form::Odd => near | 1,
            Form::Prime => (2..=near).rev().find(|&number| is_prime(number)).unwrap_or(2),
            Form::Round if near < 16 || self.one_in(2) => 1 << near.ilog2(),
            Form::Round if near < 64 => near / 8 * 8,
            Form::Round => near / 32 * 32,
        }
    }

    /// Many matrices of 3 to 200 rows and columns, which are transposed; in one of three cases the
    /// batch has two axes, which change places, and in one of three the elements are short rows.
    fn batch(&mut self, elements: usize) -> (Vec<usize>, Vec<usize>) {
        let most = (elements / 4).isqrt().clamp(3, 200);
        let mut side = || 3 + self.below(most - 2);
        let (rows, cols) = (side(), side());
        let (form, few) = (self.below(3), 2 + self.below(15));
        let left = elements / (rows * cols);
        match form {
            0 => (vec![left, rows, cols], vec![0, 2, 1]),
            1 => (vec![few, left / few, rows, cols], vec![1, 0, 3, 2]),
            _ => (vec![left / few, rows, cols, few], vec![0, 2, 1, 3]),
        }
    }

    /// Structs of 2 to 16 fields into an array a field, or back; in two of four cases a batch of
    /// such arrays.
    fn structs(&mut self, elements: usize) -> (Vec<usize>, Vec<usize>) {
        let (fields, arrays) = (2 + self.below(15), 2 + self.below(63));
        match self.below(4) {
            0 => (vec![elements / fields, fields], vec![1, 0]),
            1 => (vec![fields, elements / fields], vec![1, 0]),
            2 => (vec![arrays, elements / fields / arrays, fields], vec![0, 2, 1]),
            _ => (vec![arrays, fields, elements / fields / arrays], vec![0, 2, 1]),
        }
    }

    /// Images of pixels into planes, or back: of 2 to 4 channels, or of up to 512.
    fn images(&mut self, elements: usize) -> (Vec<usize>, Vec<usize>) {
        let channels = if self.one_in(2) { 2 + self.below(3) } else { self.between(5, 512) };
        let most = (elements / channels).isqrt().clamp(7, 2160);
        let (rows, cols) = (self.between(7, most), self.between(7, most));
        let images = elements / (channels * rows * cols);
        if self.one_in(2) {
            (vec![images, rows, cols, channels], vec![0, 3, 1, 2])
        } else {
            (vec![images, channels, rows, cols], vec![0, 2, 3, 1])
        }
    }

    /// Steps of 1 and -1, one of which is -1 at least.
    fn backwards(&mut self, rank: usize) -> Vec<isize> {
        let mut steps: Vec<isize> = (0..rank).map(|_| if self.one_in(2) { -1 } else { 1 }).collect();
        steps[self.below(rank)] = -1;
        steps
    }

    /// Steps of 1, and one or two of 2 to 4, of which a quarter goes backwards.
    fn steps(&mut self, rank: usize) -> Vec<isize> {
        let mut steps = vec![1; rank];
        for _ in 0..1 + self.below(2) {
            let step = 2 + self.below(3) as isize;
            steps[self.below(rank)] = if self.one_in(4) { -step } else { step };
        }
        steps
    }
}

const MIXED: [Form; 4] = [Form::Any, Form::Round, Form::Odd, Form::Prime];

fn is_prime(number: usize) -> bool {
    number > 1 && (2..=number.isqrt()).all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a of the names and kinds, which no version of Rust changes.
    fn hash(cases: &[Case]) -> u64 {
        let bytes = cases.iter().flat_map(|case| case.name.bytes().chain(case.kind.name().into_bytes()));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }

    #[test]
    fn a_seed_draws_the_same_cases_for_ever() {
        let drawn = cases(1, 300, Sizes::TIMED);
        assert_eq!(
            hash(&drawn),
            2_599_062_127_134_142_783,
            "the cases of a seed are others: old records do not compare with new ones"
        );
        assert_eq!(cases(1, 40, Sizes::TIMED), drawn[..40], "a longer list begins with the shorter one");
        assert_ne!(cases(2, 300, Sizes::TIMED), drawn);
    }

    #[test]
    fn every_kind_rank_and_width_comes_up_in_arrays_of_the_sizes_asked_for() {
        for (seed, sizes) in [(1, Sizes::TIMED), (2, Sizes::COUNTED), (3, Sizes { least: 1 << 10, most: 1 << 14 })] {
            let drawn = cases(seed, 300, sizes);
            for kind in Kind::ALL {
                assert!(drawn.iter().filter(|case| case.kind == kind).count() >= 33, "{kind:?}");
            }
            for rank in 2..=8 {
                assert!(drawn.iter().filter(|case| case.shape.len() == rank).count() >= 15, "rank {rank}");
            }
            for dtype in TYPES {
                assert!(drawn.iter().filter(|case| case.dtype == dtype).count() >= 30, "{dtype}");
            }
            for case in &drawn {
                for len in [case.len(), case.storage_len()] {
                    assert!(sizes.hold(len * case.dtype.width()), "{case:?}");
                }
                let source = case.source().expect("a layout");
                assert_eq!(source.storage_len(), case.storage_len(), "{case:?}");
                assert!(!source.is_standard_layout(), "{case:?} is a copy");
                // Fewer axes than two are left only where one runs backwards or in steps.
                assert!(source.coalesced().rank() >= 2 || case.steps.is_some(), "{case:?}");
            }
            let names: HashSet<_> = drawn.iter().map(|case| &case.name).collect();
            assert_eq!(names.len(), drawn.len());
        }
    }

    #[test]
    fn sizes_that_some_kind_never_has_are_refused() {
        for (least, most) in [(0, 1 << 20), (512, 1 << 20), (1 << 10, (1 << 14) - 1), (1 << 20, 1 << 10)] {
            let drawn = std::panic::catch_unwind(|| cases(1, 1, Sizes { least, most }));
            assert!(drawn.is_err(), "{least} to {most}");
        }
    }

    #[test]
    fn most_timed_cases_are_short() {
        let drawn = cases(5, 300, Sizes::TIMED);
        let short = drawn.iter().filter(|case| case.len() * case.dtype.width() <= 256 << 20).count();
        assert!((200..300).contains(&short), "{short}");
    }

    #[test]
    fn extents_and_steps_are_those_of_the_kind() {
        for case in cases(4, 300, Sizes::TIMED) {
            let all = |suits: fn(usize) -> bool| case.shape.iter().all(|&extent| suits(extent));
            let steps = case.steps.clone().unwrap_or_default();
            let right = match case.kind {
                Kind::Round => all(|extent| extent.is_power_of_two() || extent.is_multiple_of(8)),
                Kind::Odd => all(|extent| !extent.is_multiple_of(2)),
                Kind::Prime => all(is_prime),
                Kind::Mixed | Kind::Images | Kind::Structs => true,
                Kind::Batch => case.shape[1..].iter().filter(|extent| (3..=200).contains(*extent)).count() >= 2,
                Kind::Reversed => steps.contains(&-1) && steps.iter().all(|step| step.abs() == 1),
                Kind::Stepped => {
                    let beyond = steps.iter().filter(|step| step.abs() > 1);
                    beyond.clone().all(|step| step.abs() <= 4) && (1..=2).contains(&beyond.count())
                }
            };
            assert!(right, "{case:?}");
            assert_eq!(case.steps.is_some(), matches!(case.kind, Kind::Reversed | Kind::Stepped), "{case:?}");
        }
    }

    #[test]
    fn primes_are_prime() {
        let primes: Vec<_> = (0..30).filter(|&number| is_prime(number)).collect();
        assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }

    #[test]
    fn a_view_in_steps_starts_where_it_says() {
        let (shape, axes, steps) = (vec![2, 3], vec![1, 0], Some(vec![-2, 3]));
        let case = Case::new(Kind::Stepped, DType::U8, shape, axes, steps);
        assert_eq!(case.name, "u8 2x3 10 steps -2,3");
        let source = case.source().expect("a layout");
        // The array is 4 x 9, and its rows 3 and 1 are taken.
        assert_eq!((source.shape(), source.strides(), source.offset()), (&[3, 2][..], &[3, -18][..], 27));
    }
}
