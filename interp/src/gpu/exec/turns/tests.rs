use super::*;

#[test]
fn a_part_of_the_blocks_is_spread_over_the_grid() {
    for (blocks, taken) in [(1000, 256), (1 << 20, 256), (300, 256), (1 << 62, 1 << 8), (7, 7)] {
        let part = Part { blocks, taken };
        let chosen: Vec<u64> = (0..taken).map(|turn| part.block(turn)).collect();
        assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "{chosen:?}");
        assert!(
            chosen.last() < Some(&blocks) && chosen.last() >= Some(&(blocks - blocks.div_ceil(taken))),
            "{chosen:?}"
        );
        // Even if a row has as many tiles as there are blocks between two turns, the choice
        // covers every part of the row.
        let apart = blocks / taken;
        let parts: std::collections::BTreeSet<_> = chosen.iter().map(|block| block % apart * 4 / apart).collect();
        assert!(apart < 4 || parts.len() == 4, "{parts:?} of {blocks}");
    }
    assert!((0..7).all(|turn| Part { blocks: 7, taken: 7 }.block(turn) == turn));
}
