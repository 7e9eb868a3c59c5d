//! Numbers to another type.

use crate::abi::{CAST, CAST_BLOCK, CastParams, EntryId, Key};
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::{DType, Element};
use crate::error::{Error, ErrorKind, Result, counted};
use crate::launch_shape::LaunchShape;
use crate::layout::Layout;
use crate::ops::numbering::grid;
use crate::ops::operand::queue_among;
use crate::ops::operand::{check_contiguous_addresses, check_shapes, start};
use crate::ops::span::common_span;
use crate::stream::Stream;
use crate::view::{View, ViewMut};

/// The numbers, in the order of [`DType::ALL`]: all but the complex ones.
const TYPES: usize = 12;

/// Queues `dst = src as D`, element by element, on `stream`. Reads `n` elements and writes as many.
///
/// Numbers become what Rust's `as` makes of them: of integers that become narrower the low bits are kept; floats lose what is behind
/// the point, and those beyond an integer's range become its least or greatest, what is no number 0; what becomes a float is rounded
/// once, to the nearest and of two to the even one, and what is too large for it becomes infinite. What is no number stays none, but
/// its bits may change. Types that differ only in their sign are copied, and so are equal ones.
///
/// # Errors
///
/// `Layout` where the shapes differ or an operand does not lie in C order without gaps; `InvalidArgument` where an element is complex,
/// or the three are not of one device; and what the driver failed with.
///
/// ```
/// # #[cfg(feature = "interp")] {
/// use warpstride::device::{Backend, Device};
///
/// let device = Device::open(Backend::Soft)?;
/// let numbers = device.upload(&[-1.5_f32, 0.5, 99.9, 1e9, f32::NAN])?;
/// let mut bytes = device.alloc::<u8>(5)?;
/// warpstride::ops::cast(numbers.view(&[5])?, bytes.view_mut(&[5])?, device.default_stream())?;
/// assert_eq!(bytes.download()?, [0, 0, 99, 255, 0]);
/// # }
/// # Ok::<(), warpstride::Error>(())
/// ```
pub fn cast<S: Element, D: Element>(src: View<'_, S>, dst: ViewMut<'_, D>, stream: &Stream) -> Result<()> {
    check_shapes(src.layout(), dst.layout())?;
    let starts = [start::<S>(src.layout())?, start::<D>(dst.layout())?];
    let memories = [src.memory(), dst.memory()];
    queue_among(memories, stream, || {
        let [from, to] = [0, 1].map(|at| memories[at].address() + starts[at]);
        // SAFETY: views of as many contiguous elements, which lie within buffers that live until their drops; what is written is
        // borrowed exclusively; other work is ordered by `queue_among`, which also holds all to one device.
        unsafe { cast_raw(dst.device(), (from, S::DTYPE), (to, D::DTYPE), dst.len() as u64, stream.handle()) }
    })
}

/// Queues a cast of `len` elements in memory that others own, each side an address and a type: see [`ops`](super).
///
/// # Errors
///
/// `InvalidArgument` where an address is not a multiple of an element, the sides overlap, or a type is complex; and what the driver
/// failed with.
///
/// # Safety
///
/// - From both addresses, `len` elements lie within memory that `device` can access, live until it has run.
/// - `stream` is a live stream of `device`'s context.
/// - From this call until it has run, no other work writes the source or touches the destination, unless it is ordered before or
///   after it on `stream` or by events.
pub unsafe fn cast_raw(
    device: &Device,
    (src, from): (u64, DType),
    (dst, to): (u64, DType),
    len: u64,
    stream: StreamHandle,
) -> Result<()> {
    let widths = [from.width() as u64, to.width() as u64];
    let bytes = widths.map(|width| u128::from(len) * u128::from(width));
    check_contiguous_addresses([(src, widths[0]), (dst, widths[1])], bytes)?;
    let Some(entry) = cast_entry(from, to)? else {
        let elements = usize::try_from(len).map_err(|_| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("{len} are more than can be addressed; cast fewer", len = counted(len, "element")),
            )
        })?;
        let layout = Layout::row_major(&[elements])?;
        // SAFETY: as the caller promises; the bits of one type are those of the other.
        return unsafe { crate::ops::copy_into_raw(device, src, &layout, dst, &layout, to.width(), stream) };
    };
    if len == 0 {
        return Ok(());
    }
    let count = 16 / widths[0].max(widths[1]);
    let span = common_span(len, count, [(src, widths[0]), (dst, widths[1])]);
    let lanes = span.quads.max(len - span.quads * count);
    let blocks = lanes.div_ceil(u64::from(CAST_BLOCK));
    let shape = LaunchShape { grid: grid(blocks), block: [CAST_BLOCK, 1, 1], dynamic_shared: 0 };
    // SAFETY: the entry takes these parameters; the shape has a lane for every quad and every other element; the rest as the
    // caller promises.
    unsafe { device.launch(entry, &shape, &CastParams { src, dst, span }, stream) }
}

/// The kernel that casts from one type to another; `None` where the bits stay as they are.
///
/// # Errors
///
/// `InvalidArgument` where a type is complex.
pub fn cast_entry(from: DType, to: DType) -> Result<Option<EntryId>> {
    if [from, to].iter().any(|&dtype| dtype as usize >= TYPES) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{from} cannot be cast to {to}: complex numbers are none of one part; take their parts as an axis of floats"
            ),
        ));
    }
    let (from, to) = kernel(from, to);
    Ok(CAST.find(Key::types(from, to)))
}

/// The types whose kernel casts these, two of a kind where bits stay as they are: the sign matters only of an integer that others
/// than narrower integers are made of, and of one that a float becomes.
fn kernel(from: DType, to: DType) -> (DType, DType) {
    let (Some(unsigned_from), Some(unsigned_to)) = (unsigned(from), unsigned(to)) else { return (from, to) };
    (if to.width() <= from.width() { unsigned_from } else { from }, unsigned_to)
}

/// The unsigned integer of an integer's width.
fn unsigned(dtype: DType) -> Option<DType> {
    match dtype {
        DType::U8 | DType::I8 => Some(DType::U8),
        DType::U16 | DType::I16 => Some(DType::U16),
        DType::U32 | DType::I32 => Some(DType::U32),
        DType::U64 | DType::I64 => Some(DType::U64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_the_kernel_of_its_name_or_keeps_its_bits() {
        let mut kernels = 0;
        for from in &DType::ALL[..TYPES] {
            for to in &DType::ALL[..TYPES] {
                match cast_entry(*from, *to).unwrap() {
                    Some(entry) => {
                        let (kernel_from, kernel_to) = kernel(*from, *to);
                        assert_eq!(entry.name(), format!("cast_{kernel_from}_{kernel_to}"), "{from} to {to}");
                        kernels += usize::from((kernel_from, kernel_to) == (*from, *to));
                    }
                    None => {
                        let (from, to) = kernel(*from, *to);
                        assert_eq!(from, to, "what has no kernel keeps its bits");
                    }
                }
            }
        }
        assert_eq!(kernels, CAST.entries().len());
    }

    #[test]
    fn parts_of_complex_numbers_are_asked_for() {
        assert!(cast_entry(DType::C64, DType::F32).unwrap_err().to_string().contains("parts"));
    }
}
