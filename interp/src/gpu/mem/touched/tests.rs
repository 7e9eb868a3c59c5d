use super::*;

const BASE: u64 = 1 << ADDRESS_BITS;
const LOAD: Ways = Ways { loads: true, stores: false, is_strong: false };
const STORE: Ways = Ways { loads: false, stores: true, is_strong: false };

/// A launch that touched some bytes, of an allocation or at [`HOST`].
fn touched(accesses: &[(u64, Ways, u64)]) -> Touched {
    let touched = Touched::none([(0, false), (200, false), (8, true)].into_iter(), [(HOST, 100)].into_iter()).unwrap();
    for &(address, ways, bytes) in accesses {
        match address.checked_sub(HOST) {
            Some(offset) => touched.add_of_host(HOST, ways, offset, bytes),
            None => touched.add((address >> ADDRESS_BITS) as usize, ways, address % BASE, bytes),
        }
    }
    touched
}

const HOST: u64 = 5 << ADDRESS_BITS;

#[test]
fn two_launches_clash_where_one_stores_and_not_both_are_strong() {
    let [strong, stored] = [Ways { stores: true, is_strong: true, ..LOAD }, STORE];
    for (own, its, clash) in [
        ((BASE + 70, stored, 8), (BASE + 77, LOAD, 4), Some(BASE + 77)),
        ((BASE + 70, LOAD, 8), (BASE + 77, LOAD, 4), None),
        ((BASE + 70, stored, 8), (BASE + 78, stored, 4), None),
        ((BASE, strong, 4), (BASE, strong, 4), None),
        ((BASE, strong, 4), (BASE + 3, LOAD, 4), Some(BASE + 3)),
        ((HOST + 9, LOAD, 1), (HOST, stored, 10), Some(HOST + 9)),
        ((HOST, LOAD, 8), (BASE, stored, 8), None),
        ((2 * BASE, stored, 8), (2 * BASE, stored, 8), None),
    ] {
        let [own, its] = [own, its].map(|access| touched(&[access]));
        assert_eq!((own.clash(&its), its.clash(&own)), (clash, clash));
    }
}

#[test]
fn ranges_are_looked_up_added_and_forgotten() {
    let both = touched(&[(BASE + 64, LOAD, 4), (HOST + 50, STORE, 2)]);
    assert_eq!((both.first_in(BASE, 65, false), both.first_in(BASE, 64, false)), (Some(BASE + 64), None));
    assert_eq!((both.first_in(BASE, 200, true), both.first_in(HOST + 51, 9, true)), (None, Some(HOST + 51)));
    assert_eq!(both.first_in(HOST - 1, 1, false), None);
    assert!(both.absorb(&touched(&[(BASE, STORE, 1)])));
    assert_eq!((both.counts(), both.first_in(BASE, 200, true)), ([4, 3], Some(BASE)));
    both.forget(HOST + 3);
    assert_eq!(both.counts(), [4, 1]);
    let larger = Touched::none([0, 200, 8, 1].map(|bytes| (bytes, false)).into_iter(), std::iter::empty()).unwrap();
    larger.add(3, STORE, 0, 1);
    assert!(!both.absorb(&larger));
}
