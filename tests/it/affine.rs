//! Plans of permutes that scale, shift and convert: which kernel, and what is refused.

use warpstride::ErrorKind;
use warpstride::device::{Estimated, TunedWeights, Weights};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::element::DType;
use warpstride::error::Result;
use warpstride::layout::Layout;
use warpstride::ops::{AffinePlan, Align, Channels, Explanation, Limit, Plan, Quantity, Target};

const TARGET: Target = Target::new((9, 0));

fn plan(src: &Layout, from: DType, dst: &Layout, to: DType, channels: Option<usize>) -> Result<AffinePlan> {
    let align = Align::ALLOCATION;
    AffinePlan::new((src, align, from), (dst, align, to), channels, TARGET)
}

fn c_order(shape: &[usize]) -> Layout {
    Layout::row_major(shape).unwrap()
}

/// The kernel of an array of bytes with its axes in another order, as `f16`.
fn entry(shape: &[usize], axes: &[usize], channels: Option<usize>) -> &'static str {
    let src = c_order(shape).permuted_axes(axes).unwrap();
    let plan = plan(&src, DType::U8, &c_order(src.shape()), DType::F16, channels).unwrap();
    plan.entry().unwrap()
}

#[test]
fn transposes_go_by_tiles_and_all_else_element_by_element() {
    assert_eq!(entry(&[640, 480], &[1, 0], None), "affine_tile_u8_f16");
    assert_eq!(entry(&[8, 56, 56, 64], &[0, 3, 1, 2], Some(1)), "affine_tile_u8_f16");
    // Rows of no whole quad, of the source and of the result.
    assert_eq!(entry(&[6400, 481], &[1, 0], None), "affine_quads_f16");
    assert_eq!(entry(&[6401, 480], &[1, 0], None), "affine_quads_f16");
    // A launch takes most of the time.
    assert_eq!(entry(&[640, 481], &[1, 0], None), "affine_elements");
    assert_eq!(entry(&[8, 64, 33, 65], &[0, 2, 1, 3], None), "affine_elements");
    // Images to planes, and planes to images.
    assert_eq!(entry(&[8, 1080, 1920, 3], &[0, 3, 1, 2], Some(1)), "affine_quads_f16");
    assert_eq!(entry(&[8, 3, 1080, 1920], &[0, 2, 3, 1], Some(3)), "affine_quads_f16");
    // Nothing turned, and more than narrow indices count.
    assert_eq!(entry(&[640, 480], &[0, 1], None), "affine_elements");
    assert_eq!(entry(&[1 << 16, 1 << 15, 3], &[2, 0, 1], None), "affine_elements_wide");
}

#[test]
fn every_decline_names_the_quantity_that_decided() {
    let explained = |shape: &[usize], axes: &[usize], channels: Channels| {
        let src = c_order(shape).permuted_axes(axes).unwrap();
        let (dst, align) = (c_order(src.shape()), Align::ALLOCATION);
        AffinePlan::new((&src, align, DType::U8), (&dst, align, DType::F16), channels, TARGET).unwrap().explain()
    };
    let declines = |shape: &[usize], axes: &[usize], channels: Channels| {
        let explanation = explained(shape, axes, channels);
        let (taking, declining): (Vec<_>, Vec<_>) = explanation.verdicts.iter().partition(|verdict| verdict.takes);
        assert!(explanation.verdicts.starts_with(&taking.into_iter().cloned().collect::<Vec<_>>()), "{explanation}");
        assert!(explanation.verdicts[0].reason.ends_with(&explanation.reason), "{explanation}");
        let deciding = declining.into_iter().map(|verdict| verdict.quantity.unwrap_or_else(|| panic!("{verdict}")));
        deciding.map(|Quantity { name, value, limit }| (name, value, limit)).collect::<Vec<_>>()
    };
    assert_eq!(declines(&[8, 9, 10, 3], &[0, 3, 1, 2], Channels::WithLaunch(1)), []);
    assert_eq!(declines(&[640, 480], &[1, 0], Channels::Uniform), []);
    assert_eq!(declines(&[640, 480], &[0, 1], Channels::Uniform), []);
    let cut = "alignment of every row's start and length in bytes";
    assert_eq!(declines(&[6480, 484], &[1, 0], Channels::Uniform), [(cut, 4, Limit::AtLeast(16))]);
    assert_eq!(declines(&[6401, 480], &[1, 0], Channels::Uniform), [(cut, 2, Limit::AtLeast(16))]);
    let wide = ("kernels for indices of 64 bits", 0, Limit::AtLeast(1));
    assert_eq!(declines(&[1 << 16, 1 << 15, 3], &[2, 0, 1], Channels::Uniform), [(cut, 1, Limit::AtLeast(16)), wide]);
}

#[test]
fn a_plan_lists_the_strategies_that_it_asked() {
    let src = c_order(&[6400, 481]).t();
    let explained = plan(&src, DType::F32, &c_order(src.shape()), DType::Bf16, None).unwrap().explain();
    let names: Vec<_> = explained.verdicts.iter().map(|verdict| (verdict.strategy, verdict.takes)).collect();
    assert_eq!(names, [("quads", true), ("elements", true), ("tiles", false)]);
    let first = &explained.verdicts[0].reason;
    assert!(first.starts_with("about ") && first.contains(" times as long as a copy: each side"), "{first}");
}

/// `bench --tune` times permutes, and no maps.
#[test]
fn tuned_weights_of_permutes_change_no_map() {
    let mut weights = Weights::of(TARGET);
    for (kernel, width_log2) in Estimated::ALL.iter().flat_map(|&kernel| (0..5).map(move |log2| (kernel, log2))) {
        weights.of_kernel_mut(kernel, width_log2).fill(9.0);
    }
    let soft = Soft::new();
    for shape in [[6400, 481, 3], [6400, 480, 3], [6401, 480, 4]] {
        let src = c_order(&shape).permuted_axes(&[2, 1, 0]).unwrap();
        let [policy, tuned] = [None, Some(TunedWeights::of(&weights))].map(|weights| {
            let (align, target) = (Align::ALLOCATION, Target::of_info(soft.info(), None, weights));
            let (from, to) = ((&src, align, DType::U8), (&c_order(src.shape()), align, DType::F16));
            let plan = AffinePlan::new(from, to, None, target).unwrap();
            (plan.to_string(), plan.explain().verdicts.iter().map(ToString::to_string).collect::<Vec<_>>())
        });
        assert!(policy.1.iter().any(|verdict| verdict.contains("gathered and mapped by vectors")), "{policy:?}");
        assert_eq!(policy, tuned);
    }
}

#[test]
fn layouts_that_mean_the_same_have_one_plan() {
    let (src, dst) = (c_order(&[640, 480]).t(), c_order(&[480, 640]));
    let once = plan(&src, DType::F32, &dst, DType::F16, None).unwrap();
    let split = |layout: Layout| layout.split_axis(0, &[48, 10]).unwrap();
    assert_eq!(plan(&split(src), DType::F32, &split(dst), DType::F16, None).unwrap(), once);
    let reversed = |layout: Layout| layout.reverse(0).unwrap().reverse(1).unwrap();
    assert_eq!(plan(&reversed(src), DType::F32, &reversed(dst), DType::F16, None).unwrap(), once);
    assert_ne!(plan(&src, DType::F32, &dst, DType::F16, Some(0)).unwrap(), once);
    let explained = once.explain();
    assert_eq!((explained.read, explained.written), (4 * 640 * 480, 2 * 640 * 480));
    let text = once.to_string();
    assert!(text.starts_with("affine_tile_f32_f16: 1 of 640 x 480 elements, grid"), "{text}");
}

#[test]
fn arrays_of_any_size_are_planned() {
    for (len, to) in [((1 << 62) - 1, DType::F16), ((1 << 61) - 1, DType::F32)] {
        let repeated = c_order(&[1, 64]).broadcast(&[len / 64, 64]).unwrap();
        for dst in [c_order(&[len / 64, 64]), c_order(&[64, len / 64]).t()] {
            let plan = plan(&repeated, DType::F32, &dst, to, Some(0)).unwrap();
            let Explanation { read, written, .. } = plan.explain();
            assert!(written == ((len / 64 * 64) * to.width()) as u64 && read > written, "{plan}");
        }
    }
}

#[test]
fn nothing_is_launched_for_no_elements() {
    let none = c_order(&[0, 5]);
    let plan = plan(&none, DType::U8, &none, DType::F32, Some(1)).unwrap();
    let explained = plan.explain();
    assert_eq!((plan.entry(), plan.shape(), explained.read, explained.written), (None, None, 0, 0));
    assert_eq!(plan.to_string(), "nothing to map");
}

#[test]
fn what_cannot_be_planned_names_what_is_wrong() {
    let (one, other) = (c_order(&[4, 6]), c_order(&[6, 4]));
    let repeated = c_order(&[6]).broadcast(&[4, 6]).unwrap();
    for (src, from, dst, to, channels, kind, wrong) in [
        (&one, DType::U8, &other, DType::F32, None, ErrorKind::Layout, "[4, 6] cannot be mapped to shape [6, 4]"),
        (&one, DType::U8, &repeated, DType::F32, None, ErrorKind::Layout, "overlap"),
        (&one, DType::U8, &one, DType::F32, Some(2), ErrorKind::InvalidArgument, "no axis 2"),
        (&one, DType::I32, &one, DType::F32, None, ErrorKind::InvalidArgument, "i32 are not mapped to f32"),
        (&one, DType::F32, &one, DType::U8, None, ErrorKind::InvalidArgument, "f32 are not mapped to u8"),
        (&one, DType::U8, &one, DType::F64, None, ErrorKind::InvalidArgument, "u8 are not mapped to f64"),
        (&one, DType::F64, &one, DType::F16, None, ErrorKind::InvalidArgument, "f64 are not mapped to f16"),
    ] {
        let error = plan(src, from, dst, to, channels).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(wrong), "{error}");
    }
    let side = |align| (&one, Align::of(align), DType::F32);
    let error = AffinePlan::new(side(2), side(4), None, TARGET).unwrap_err();
    assert!(error.to_string().contains("the source's storage is aligned to 2 bytes"), "{error}");
}
