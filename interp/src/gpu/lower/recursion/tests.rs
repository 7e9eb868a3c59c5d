use super::*;

#[test]
fn functions_on_cycles_are_recursive_and_no_others() {
    // 0 calls 1; 1 and 2 call each other; 2 also calls 3; 4 calls itself; 5 calls 3 or 6
    // through a pointer; 6 calls 5.
    let list: Arc<[u32]> = [3, 6].into();
    let calls = [
        (0, Target::Function(1)),
        (1, Target::Function(2)),
        (2, Target::Function(1)),
        (2, Target::Function(3)),
        (4, Target::Function(4)),
        (5, Target::Pointer(Some(list))),
        (6, Target::Function(5)),
    ];
    let of = |calls: &[(u32, Target)]| recursive(7, calls.iter().map(|(caller, target)| (*caller, target)));
    assert_eq!(of(&calls), [false, true, true, false, true, true, true]);
    // A function that may call any function may call itself, and so may the functions that lead
    // to it.
    assert_eq!(
        of(&[(0, Target::Function(1)), (1, Target::Pointer(None)), (2, Target::Print)]),
        [true, true, false, false, false, false, false]
    );
}

/// A search that began anew at each function, or went through the list for each call, would
/// take 10 to the power of 12 steps, which is hours.
#[test]
fn a_long_chain_and_many_calls_through_one_list_are_no_long_work() {
    let functions = 1_000_000;
    let list: Arc<[u32]> = (0..functions).collect();
    let chain = (1..functions).map(|number| (number - 1, Target::Function(number)));
    let calls: Vec<_> = chain.chain((0..functions).map(|n| (n, Target::Pointer(Some(Arc::clone(&list)))))).collect();
    let calls = || calls.iter().map(|(caller, target)| (*caller, target));
    let edges: usize = graph(functions as usize, calls()).iter().map(Vec::len).sum();
    assert!(edges < 5 * functions as usize, "{edges} edges");
    let found = recursive(functions as usize, calls());
    assert!(found.into_iter().all(|recursive| recursive));
}
