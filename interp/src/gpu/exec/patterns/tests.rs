use super::*;

#[test]
fn what_is_remembered_is_what_would_be_counted() {
    let mut patterns = Patterns::new();
    let masks = [u32::MAX, u32::MAX, 0xffff, u32::MAX, 1, 0xff0f, u32::MAX];
    for (pc, bytes, access) in
        [(7, 1, AccessKind::Load), (39, 2, AccessKind::Store), (71, 4, AccessKind::Load), (8, 16, AccessKind::Store)]
    {
        for step in 0..2000_u32 {
            // A few strides, each for a while, with moving starts.
            let (stride, start) = ([1, 33, 32, 0, 5][step as usize / 16 % 5], step * 7 % 64);
            let offsets = each(|lane| (start + lane as u32 * stride) * bytes);
            let mask = masks[step as usize / 8 % masks.len()];
            let wanted = wavefronts(&offsets, mask, bytes, access);
            assert_eq!(patterns.wavefronts(pc, &offsets, mask, bytes, access), wanted, "{step}: {bytes} bytes");
        }
    }
}
