//! Copy engines in place of kernels: where they go, and that values are right.

use std::sync::Arc;

use warpstride::ErrorKind;
use warpstride::distributed::{Exchange, Gpus, Links, PairLinks, Redistribution};
use warpstride::interp::Checks;

use super::{Reach, devices, redistribute_in_pieces, split};

fn gpus(count: usize, seed: u64) -> Arc<Gpus> {
    let devices = devices(&Reach::Engines.islands(count, seed, Checks::NONE)).unwrap();
    Arc::new(Reach::Engines.gpus(devices).unwrap())
}

#[test]
fn values_are_right_in_pieces_of_any_size() {
    (0..4).for_each(|seed| redistribute_in_pieces(&gpus(3, seed)));
}

/// The plan of an exchange of this many bytes, whose second half goes from rank 1 to rank 0.
fn plan(bytes: usize, axes: [usize; 2]) -> Redistribution {
    let shape = [bytes / 1024, 1024];
    let result = axes.map(|axis| shape[axis]);
    Redistribution::new(&split(&shape, "0:2"), axes, &split(&result, ""), 1).unwrap()
}

#[test]
fn engines_take_long_runs() {
    let gpus = super::gpus(2, 0, false);
    let pairs = |bytes, axes| Exchange::new(&gpus, &plan(bytes, axes)).unwrap().by_engines();
    assert_eq!(pairs(8 << 20, [0, 1]), [(1, 0)], "4 MiB");
    assert_eq!(pairs((8 << 20) - 2048, [0, 1]), []);
    assert_eq!(pairs(8 << 20, [1, 0]), [], "a transpose");
    let text = Exchange::new(&gpus, &plan(8 << 20, [0, 1])).unwrap().to_string();
    assert!(text.contains("rank 1 to 0: 4194304 bytes in 1 piece by copy engines"), "{text}");
}

#[test]
fn measured_links_decide() {
    let gpus = super::gpus(2, 0, false);
    let pairs = |kernels: [f64; 2], engine: [f64; 2], axes| {
        let links = |[start_ms, gbps]: [f64; 2]| Links { start_ms, gbps };
        let link = PairLinks { from: 1, to: 0, kernels: links(kernels), engine: links(engine) };
        gpus.set_links(vec![link]).unwrap();
        Exchange::new(&gpus, &plan(8 << 20, axes)).unwrap().by_engines()
    };
    assert_eq!(pairs([0.0, 10.0], [0.0, 11.0], [0, 1]), [(1, 0)]);
    assert_eq!(pairs([0.0, 10.0], [0.0, 9.0], [0, 1]), [], "kernels are faster");
    assert_eq!(pairs([0.0, 10.0], [1.0, 11.0], [0, 1]), [], "the start takes longer");
    assert_eq!(pairs([0.0, 10.0], [0.0, 19.0], [1, 0]), [], "it is packed, too");
    assert_eq!(pairs([0.0, 10.0], [0.0, 21.0], [1, 0]), [(1, 0)]);
    let slow = Links { start_ms: 0.0, gbps: 1.0 };
    let refused = gpus.set_links(vec![PairLinks { from: 0, to: 2, kernels: slow, engine: slow }]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("a link from rank 0 to 2 was given, and there are 2 ranks"), "{refused}");
    assert_eq!(gpus.measure_links(1).unwrap_err().kind(), ErrorKind::Unavailable, "software GPUs have no times");
}
