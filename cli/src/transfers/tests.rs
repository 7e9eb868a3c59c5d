//! `Transfers::measure` on a driver that loses copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warpstride::Device;
use warpstride::driver::DriverKind;
use warpstride::driver::soft::Soft;
use warpstride::driver::trace::Method;
use warpstride::error::counted;

use crate::run::Run;
use crate::run::transfers::Transfers;

use crate::hooked::Hooked;

/// The size below the largest, whose copies arrive.
const ARRIVES: usize = 64 << 10;

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
        let arriving = counted(ARRIVES, "byte").to_string();
        let doing = |what: &str| loses.store(!what.ends_with(&arriving), Ordering::Relaxed);
        let transfers = Transfers::measure(&device, largest, doing).unwrap();
        for copy in &transfers.copies {
            let arrives = copy.bytes == ARRIVES as u64;
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
