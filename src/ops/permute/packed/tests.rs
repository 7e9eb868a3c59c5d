use super::*;
use crate::layout::Layout;

fn of(shape: &[usize], axes: &[usize], width: usize) {
    let src = Layout::row_major(shape).unwrap().permuted_axes(axes).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    let canonical = Canonical::new(&src, &dst, width).widened(Align::ALLOCATION, Align::ALLOCATION);
    let mut tiling = Tiling::new(&canonical).unwrap();
    tiling.grow((16 << 10) / canonical.width);
    tiling.src.inner = tiling.inner(&tiling.src);
    tiling.dst.inner = tiling.inner(&tiling.dst);
    let src_aligned = tiling.is_aligned(&tiling.src, tiling.src_start, Align::ALLOCATION, |axis| axis.src);
    let dst_aligned = tiling.is_aligned(&tiling.dst, tiling.dst_start, Align::ALLOCATION, |axis| axis.dst);
    let (room, turn) = tiling.arrangement(src_aligned, dst_aligned);
    let conflicts = tiling.conflicts(&room, turn);
    println!(
        "{shape:?} {axes:?} w{width}: taken {:?} src {}x{} {src_aligned} dst {}x{} {dst_aligned} room {:?}={} turn {turn} conflicts {conflicts} chunks {:?} plan {}",
        &tiling.taken[..tiling.rank],
        tiling.runs(&tiling.src),
        tiling.run(&tiling.src),
        tiling.runs(&tiling.dst),
        tiling.run(&tiling.dst),
        &room.strides[..tiling.rank],
        room.bytes,
        tiling.chunks(),
        Packed::of(&canonical, Align::ALLOCATION, Align::ALLOCATION).map(|p| p.to_string()).unwrap_or_default()
    );
}

#[test]
fn show() {
    of(&[24, 22, 20, 24, 22, 20], &[5, 3, 1, 4, 2, 0], 1);
    of(&[40000, 32, 32], &[0, 2, 1], 2);
    of(&[30000, 33, 31], &[0, 2, 1], 1);
    of(&[200000, 8, 8], &[0, 2, 1], 1);
    of(&[65536, 16, 16], &[0, 2, 1], 2);
    of(&[24, 25, 26, 27, 28], &[4, 2, 0, 3, 1], 4);
    of(&[33, 65, 127, 129], &[3, 1, 0, 2], 4);
    of(&[16, 17, 18, 19, 20, 21], &[5, 4, 3, 2, 1, 0], 2);
    of(&[512, 512, 511], &[2, 1, 0], 1);
    of(&[384, 512, 640], &[2, 1, 0], 2);
    of(&[48, 50, 52, 54], &[3, 2, 1, 0], 16);
    of(&[255, 256, 257], &[1, 2, 0], 8);
    of(&[24; 6], &[5, 3, 1, 4, 2, 0], 4);
}
