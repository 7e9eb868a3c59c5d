use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warpstride::driver::DriverKind;
use warpstride::driver::soft::Soft;
use warpstride::driver::trace::Method;

use super::*;
use crate::hooked::Hooked;
use crate::run::Run;

#[test]
fn frames_take_no_more_than_the_largest_copies() {
    assert_eq!(shape_of_frames(1 << 30), FRAMES);
    assert_eq!(shape_of_frames(300 << 20), [3, 3, 3840, 2160]);
    for largest in [12, 100, 65_536, 1 << 20, 99_532_799, 99_532_800, usize::MAX] {
        let bytes = shape_of_frames(largest).iter().product::<usize>() * 4;
        assert!(bytes <= largest && (bytes > largest / 5 || largest > 1 << 30), "{bytes} of {largest}");
    }
    assert_eq!(shape_of_frames(1), [1, 3, 1, 1], "a pixel at least");
}

/// The driver loses all copies but those of the smallest size.
#[test]
fn a_lost_copy_is_not_verified() {
    for (lost, largest) in [Method::CopyH2d, Method::CopyD2h].into_iter().flat_map(|lost| [(lost, 1), (lost, 100_001)])
    {
        let loses = Arc::new(AtomicBool::new(false));
        let is_lost = Arc::clone(&loses);
        let is_lost = move |method| method == lost && is_lost.load(Ordering::Relaxed);
        let mut hooked = Hooked { loses: Box::new(is_lost), ..Hooked::new(Arc::new(Soft::new())) };
        // Copies on the software GPU have no times, whether they arrive or not.
        hooked.info.kind = DriverKind::Cuda;
        let device = Device::with_driver(Arc::new(hooked)).unwrap();
        let arriving = counted(SMALLEST, "byte").to_string();
        let doing = |what: &str| loses.store(!what.ends_with(&arriving), Ordering::Relaxed);
        let transfers = Transfers::measure(&device, largest, doing).unwrap();
        for copy in &transfers.copies {
            let arrives = copy.bytes == SMALLEST as u64;
            assert_eq!(
                (copy.verified, copy.ms.is_some(), copy.gbps.is_some()),
                (arrives, arrives, arrives),
                "{copy:?}"
            );
            assert!(arrives || copy.gbps_by_events.is_none(), "{copy:?}");
        }
        for trip in &transfers.frames {
            assert_eq!((trip.verified, trip.ms, trip.gbps), (false, None, None), "{lost:?} of {trip:?}");
        }
        let copies = transfers.copies.iter().filter(|copy| copy.bytes == largest as u64).count();
        let run = Run { transfers: Some(transfers), ..Run::new(&device, String::new(), None, Vec::new()) };
        let wrong = run.wrong();
        assert_eq!((wrong.len(), copies), (11 + 4, 11), "{wrong:?}");
    }
}
