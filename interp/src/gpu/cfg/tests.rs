use super::*;

/// A name, code, its tables, and where lanes meet that each branch of the code splits.
type Case = (&'static str, &'static [Next], &'static [&'static [u32]], &'static [u32]);

const MEETS: &[Case] = &[
    ("an if", &[Next::Branch(2), Next::On, Next::End], &[], &[2]),
    ("two sides", &[Next::Branch(3), Next::On, Next::Jump(4), Next::On, Next::End], &[], &[4]),
    ("a loop", &[Next::On, Next::On, Next::Branch(1), Next::End], &[], &[3]),
    ("nested ifs", &[Next::Branch(5), Next::Branch(3), Next::On, Next::On, Next::On, Next::End], &[], &[5, 3]),
    ("two ends", &[Next::Branch(2), Next::End, Next::End], &[], &[NOWHERE]),
    ("an early exit", &[Next::Branch(3), Next::MayEnd, Next::On, Next::End], &[], &[3]),
    ("the only exit", &[Next::Branch(2), Next::On, Next::MayEnd, Next::Jump(0)], &[], &[2]),
    ("an exit inside a function", &[Next::Branch(2), Next::Nowhere, Next::On, Next::End], &[], &[2]),
    ("an endless loop", &[Next::Branch(2), Next::On, Next::Jump(0)], &[], &[NOWHERE]),
    ("a table", &[Next::Table(0, false), Next::On, Next::Jump(4), Next::On, Next::End], &[&[1, 3, 3]], &[4]),
    ("a table under a guard", &[Next::Table(0, true), Next::On, Next::Jump(4), Next::On, Next::End], &[&[3]], &[4]),
    (
        "two branches through one table, whose targets meet at 6",
        &[Next::Branch(2), Next::Table(0, false), Next::Table(0, false), Next::Jump(6), Next::On, Next::On, Next::End],
        &[&[3, 4]],
        &[6, 6, 6],
    ),
    (
        "one table after another",
        &[Next::Table(0, false), Next::Table(1, false), Next::Table(1, false), Next::On, Next::End],
        &[&[1, 2], &[3, 4]],
        &[4, 4, 4],
    ),
];

#[test]
fn lanes_meet_where_all_their_paths_do() {
    for (what, code, tables, expected) in MEETS {
        let tables: Vec<Vec<u32>> = tables.iter().map(|targets| targets.to_vec()).collect();
        let all = Graph::new(code, &tables).reconvergence().unwrap();
        let splits = code.iter().zip(all).filter(|(next, _)| matches!(next, Next::Branch(_) | Next::Table(..)));
        let meets: Vec<u32> = splits.map(|(_, meet)| meet).collect();
        assert_eq!(meets, *expected, "{what}");
    }
}

/// Each block reads its own register and jumps to the block before it in the text. That once
/// made liveness cubic.
#[test]
fn a_long_chain_laid_out_backwards_is_no_long_work() {
    let blocks = 6000;
    let mut code = vec![Next::Jump(2 * blocks - 1)];
    let mut uses = vec![Uses::default()];
    for block in 0..blocks {
        code.extend([Next::On, if block == 0 { Next::End } else { Next::Jump(2 * block - 1) }]);
        uses.push(Uses { reads: vec![block as usize], writes: vec![], conditional: false });
        uses.push(Uses::default());
    }
    let (graph, count) = (Graph::new(&code, &[]), blocks as usize);
    assert_eq!(graph.read_before_written(&uses, count).len(), count);
    let (early, steps) = graph.live_at_first(&graph.touched(&uses, count));
    assert_eq!(early.len(), count);
    // A register goes through a block once at most.
    assert!(steps <= count * (count + 2), "{steps} steps");
}

/// Many branches whose two successors are the two ends of one long chain of jumps.
#[test]
fn what_would_be_searched_for_too_long_is_given_up() {
    let half = 10_000;
    let mut code: Vec<Next> = (0..half).flat_map(|_| [Next::Branch(2 * half), Next::Jump(3 * half - 1)]).collect();
    code.extend((2 * half..3 * half).map(|pc| Next::Jump(pc + 1)));
    code.push(Next::End);
    assert!(Graph::new(&code, &[]).reconvergence().is_none());
}

#[test]
fn registers_read_first_are_found() {
    let uses = |reads: &[usize], writes: &[usize], conditional| Uses {
        reads: reads.to_vec(),
        writes: writes.to_vec(),
        conditional,
    };
    // 0 is written first; 1 only under a guard; 2 only on one side of a branch; 3 is read at
    // once.
    let code = [Next::On, Next::On, Next::Branch(4), Next::On, Next::On, Next::End];
    let uses = [
        uses(&[3], &[0], false),
        uses(&[0], &[1], true),
        uses(&[0], &[], false),
        uses(&[], &[2], false),
        uses(&[1, 2], &[3], false),
        Uses::default(),
    ];
    assert_eq!(Graph::new(&code, &[]).read_before_written(&uses, 4), [1, 2, 3]);
}
