//! Splits packed structs of few fields into planes, or joins planes into structs: arrays of structs
//! and structs of arrays, images with their channels inside or outside.
//!
//! A block moves a chunk of structs through shared memory. On the packed side its lanes move one
//! pack at a time: a vector if images and planes start on vectors, else a word of at least 4 bytes.
//!
//! Worth, on an H100 (benches/record/experiments.md): 2 bytes 33554432 x 8 reach 0.995 of the
//! copy, by tiles 0.907; f32 16777216 x 8 0.996, by tiles 0.991; f32 33554432 x 3 reaches 3012 GB/s
//! by vectors, 2942 by words.

use std::fmt;

use super::{
    Considered, Decline, Estimated, Launch, Layouts, Step, Task, Widened, at_least, at_most, axes, divisor, found,
    grid, index, launch, power_of_two, weighed,
};
use crate::abi::{
    DEINTERLEAVE, DEINTERLEAVE_QUADS, Divisor, FIELDS_QUADS, FIELDS_THREADS, FieldsParams, INTERLEAVE,
    INTERLEAVE_QUADS, Index, fields_steps,
};
use crate::launch_shape::LaunchShape;
use crate::layout::walk::{Axis, Canonical};
use crate::ops::tuning;
use crate::ops::units::{BANK_ROW, SECTOR, VECTOR, WARP, WORD};

/// The axes by their role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Images {
    /// True if the source is the packed side.
    is_packed_src: bool,
    fields: usize,
    /// Elements from one plane to the next.
    pitch: isize,
    structs: usize,
    src_start: usize,
    dst_start: usize,
    /// The positions of the two axes; the others are the batch.
    axes: [usize; 2],
}

impl Images {
    fn of(canonical: &Canonical, most: usize) -> Result<Self, Decline> {
        let axes = canonical.axes();
        let apart = "no side holds packed structs";
        // Axes are sorted by the destination's stride.
        let nearest = axes.first().filter(|axis| axis.dst == 1);
        let nearest = found(nearest, "axes along which the destination's elements follow each other", apart)?;
        let (inner, &Axis { extent, src, .. }) = (0, nearest);
        let Canonical { src_start, dst_start, .. } = *canonical;
        let outer = |wanted: &dyn Fn(&Axis) -> bool| axes.iter().skip(1).position(wanted).map(|place| place + 1);
        let few = |extent: usize| extent <= most;
        // Planes that follow each other are structs too, but of very many fields.
        let packed = |axis: &Axis| axis.src.unsigned_abs() == 1 && axis.extent as isize == src;
        if let Some(planes) = outer(&|axis| packed(axis) && few(axis.extent)) {
            // The structs run forwards, so the planes may run backwards.
            let mut turned = *canonical;
            turned.turn_forwards_in_source(planes);
            let (Canonical { src_start, dst_start, .. }, fields) = (turned, turned.axes()[planes]);
            let (structs, axes, pitch) = (extent, [inner, planes], fields.dst);
            return Ok(Self { is_packed_src: true, fields: fields.extent, pitch, structs, src_start, dst_start, axes });
        }
        let planes = outer(&|axis| axis.src == 1 && axis.dst == extent as isize);
        let many = planes.map(|_| extent).or_else(|| outer(&packed).map(|planes| axes[planes].extent));
        at_most(many.unwrap_or(0), most, "fields of a struct", "tiles have enough columns")?;
        let planes = found(planes, "axes of fields that are packed on a side", apart)?;
        let (structs, axes) = (axes[planes].extent, [inner, planes]);
        Ok(Self { is_packed_src: false, fields: extent, pitch: src, structs, src_start, dst_start, axes })
    }
}

/// How structs are cut into blocks, whose lanes move one pack at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// True if a pack is a vector rather than a word.
    is_by_vectors: bool,
    /// Bytes of a pack.
    pack: usize,
    /// Packs of each field in a chunk.
    run: usize,
    /// Packs of each field in a group.
    group: usize,
    threads: usize,
}

impl Cut {
    /// Cuts structs into words that fill whole warps.
    fn words(width: usize, images: &Images) -> Self {
        let (pack, threads) = (width.max(WORD), FIELDS_THREADS as usize);
        let run = fields_steps(width, images.is_packed_src) * threads / images.fields / WARP * WARP;
        let group = Self::group(pack, images.fields);
        debug_assert!(run > 0 && images.fields * group >= WARP / 2, "{images:?} do not fit what the kernel holds");
        Self { is_by_vectors: false, pack, run, group, threads }
    }

    /// Cuts structs into vectors; `None` if lanes would share banks.
    fn vectors(width: usize, images: &Images, constants: &tuning::Fields) -> Option<Self> {
        let run = (FIELDS_QUADS * constants.vector_threads / images.fields / WARP * WARP).max(WARP);
        let threads = (run * images.fields).div_ceil(FIELDS_QUADS).next_multiple_of(WARP);
        let word = width.max(WORD);
        let group = Self::group(word, images.fields);
        (group >= VECTOR / word).then_some(Self { is_by_vectors: true, pack: VECTOR, run, group, threads })
    }

    /// Returns the idle bytes of the last chunk if each field has this number of bytes.
    fn idle(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(self.run * self.pack) - bytes
    }

    /// Returns the arithmetic of work that this arithmetic indexes. Kernels that move vectors use
    /// 64-bit arithmetic throughout.
    fn index(&self, index: Index) -> Index {
        if self.is_by_vectors { Index::Wide } else { index }
    }

    /// Returns the chunks of an image of structs of elements of this width.
    fn chunks(&self, structs: usize, width: usize) -> usize {
        structs.div_ceil(self.run * self.pack / width)
    }

    /// Divides the words of all banks by the power of two that the fields share with them.
    fn group(word: usize, fields: usize) -> usize {
        let banks = BANK_ROW / word;
        banks >> fields.trailing_zeros().min(banks.trailing_zeros())
    }
}

/// Returns whether one side holds packed structs of at most this number of fields, and the other
/// their planes.
pub(in crate::ops::movement::permute) fn are_packed(canonical: &Canonical, most: usize) -> bool {
    Images::of(canonical, most).is_ok()
}

/// Takes packed structs whose images and planes start on words.
pub(in crate::ops::movement::permute) fn consider(task: &Task<'_>, launch: &mut Option<Launch>) -> Considered {
    let Widened { canonical, index, .. } = task.widened();
    let (width, constants) = (canonical.width, &task.permutes().fields);
    let (images, start) = images(task)?;
    let vectors = if start >= VECTOR { Cut::vectors(width, &images, constants) } else { None };
    let cut = vectors.unwrap_or_else(|| Cut::words(width, &images));
    let index = cut.index(*index);
    *launch = Some(Launch::Fields(step(task, canonical, images, cut, index)?));
    let field = images.structs * width;
    let chunk = field.min(cut.run * cut.pack);
    let by_words = f64::from(u8::from(!cut.is_by_vectors));
    let costs = [1.0, cut.idle(field) as f64 / field as f64, SECTOR as f64 / chunk as f64, by_words];
    let reason = reason(images.is_packed_src, vectors.is_some());
    Ok(weighed(task, reason, (Estimated::Fields, width), task.traffic(), costs))
}

/// Returns the axes by their role, and the largest power of two of bytes that all images and planes
/// start on.
fn images(task: &Task<'_>) -> Result<(Images, usize), Decline> {
    let (canonical, constants) = (&task.widened().canonical, &task.permutes().fields);
    let (width, images) = (canonical.width, Images::of(canonical, constants.most)?);
    // In two's complement a negative stride is a multiple of the same power of two.
    let bits = batch(canonical, &images)
        .fold(images.src_start | images.dst_start | images.pitch as usize, |bits, axis| {
            bits | (axis.src | axis.dst) as usize
        });
    let start = power_of_two(bits.wrapping_mul(width) | task.align());
    let off = "images or planes are not aligned to words";
    at_least(start, width.max(WORD), "alignment of all images and planes in bytes", off)?;
    Ok((images, start))
}

/// Returns the axes that are neither structs nor fields.
fn batch<'a>(canonical: &'a Canonical, images: &'a Images) -> impl Iterator<Item = &'a Axis> {
    let others = canonical.axes().iter().enumerate().filter(|(place, _)| !images.axes.contains(place));
    others.map(|(_, axis)| axis)
}

fn step(
    task: &Task<'_>,
    canonical: &Canonical,
    images: Images,
    cut: Cut,
    index: Index,
) -> Result<Step<Recipe>, Decline> {
    let width = canonical.width;
    let is_by_vectors = cut.is_by_vectors;
    let (family, index_of_family) = match (images.is_packed_src, is_by_vectors) {
        // Kernels that move vectors have one width of arithmetic.
        (true, true) => (DEINTERLEAVE_QUADS, Index::Narrow),
        (false, true) => (INTERLEAVE_QUADS, Index::Narrow),
        (true, false) => (DEINTERLEAVE, index),
        (false, false) => (INTERLEAVE, index),
    };
    let entry = task.kernel(family, width, index_of_family)?;
    let blocks =
        cut.chunks(images.structs, width) * batch(canonical, &images).map(|axis| axis.extent).product::<usize>();
    let chunk = if is_by_vectors { cut.run * images.fields * VECTOR } else { 0 } as u32;
    // For large arrays, dynamic shared memory limits the blocks in flight to the best number.
    let dynamic_shared = if entry.is_hinted() { task.tuning.fields_room(chunk) } else { chunk };
    Ok(Step {
        entry,
        shape: LaunchShape { grid: grid(blocks as u64), block: [cut.threads as u32, 1, 1], dynamic_shared },
        params: Recipe { images, cut },
    })
}

/// The structs and how they are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops::movement::permute) struct Recipe {
    images: Images,
    cut: Cut,
}

impl launch::Recipe for Recipe {
    type Params = FieldsParams;

    fn params(&self, layouts: &Layouts<'_>) -> FieldsParams {
        let (Self { images, cut }, canonical) = (self, layouts.widened());
        let width = canonical.width;
        let divisor = divisor(cut.index(index(&canonical)));
        FieldsParams {
            src: (images.src_start * width) as u64,
            dst: (images.dst_start * width) as u64,
            structs: images.structs as u64,
            fields: Divisor::narrow(images.fields as u64),
            pitch: images.pitch as i64,
            run: Divisor::narrow(cut.run as u64),
            chunks: divisor(cut.chunks(images.structs, width) as u64),
            group: Divisor::narrow((images.fields * cut.group) as u64),
            group_log2: u64::from(cut.group.trailing_zeros()),
            rank: batch(&canonical, images).count() as u64,
            axes: axes(batch(&canonical, images), divisor),
        }
    }
}

fn reason(is_packed_src: bool, is_by_vectors: bool) -> &'static str {
    match (is_packed_src, is_by_vectors) {
        (true, false) => {
            "the source holds packed structs of few fields: runs of structs are read whole and split by field"
        }
        (true, true) => {
            "the source holds packed structs of few fields, and images and planes start on 16 bytes: runs of structs are read \
             whole and split by field, 16 bytes a lane"
        }
        (false, false) => {
            "the destination holds packed structs of few fields: runs of structs are joined and written whole"
        }
        (false, true) => {
            "the destination holds packed structs of few fields, and images and planes start on 16 bytes: runs of structs are \
             joined and written whole, 16 bytes a lane"
        }
    }
}

impl fmt::Display for Step<FieldsParams> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, shape, params: FieldsParams { structs, fields, rank, axes, .. } } = self;
        let images: u64 = axes[..*rank as usize].iter().map(|axis| axis.extent.value).product();
        write!(f, "{entry}: {images} of {structs} structs of {} fields, {shape}", fields.value)
    }
}
