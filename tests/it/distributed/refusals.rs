//! Each refusal, by the kind of its error and a part of its text.

use std::sync::Arc;

use warpstride::distributed::{Distributed, Exchange, Gpus, Redistribution, Split, time_push};
use warpstride::driver::Driver;
use warpstride::driver::soft::Soft;
use warpstride::interp::Checks;
use warpstride::{Device, ErrorKind, Result};

use super::{devices, gpus, host, split};

#[track_caller]
fn refused<T>(outcome: Result<T>, kind: ErrorKind, part: &str) {
    let error = outcome.err().expect("it must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(part), "{part:?} is not in {:?}", error.to_string());
}

#[test]
fn splits() {
    use ErrorKind::{InvalidArgument, Layout};
    let whole = || Split::whole(&[6, 4]).unwrap();
    refused(Split::whole(&[]), Layout, "an array without axes cannot be split");
    refused(Split::whole(&[usize::MAX, 2]), Layout, "");
    refused(Split::whole(&[1; 40]), InvalidArgument, "at most 16 are supported");
    refused(whole().cut(2, 2), InvalidArgument, "there is no axis 2 to cut: shape [6, 4] has 2");
    refused(whole().cut_at(7, &[1]), InvalidArgument, "there is no axis 7 to cut");
    refused(whole().cut(1, 2).and_then(|cut| cut.cut(1, 2)), InvalidArgument, "axis 1 of shape [6, 4] is cut already");
    refused(whole().cut(0, 0), InvalidArgument, "the parts [] of axis 0 have 0 of its 6; give parts, 1 at least");
    refused(whole().cut_at(0, &[4, 3]), InvalidArgument, "the parts [4, 3] of axis 0 have 7 of its 6");
    refused(whole().cut_at(0, &[usize::MAX, 7]), InvalidArgument, "of its 6");
    for parts in [65_537, usize::MAX] {
        refused(whole().cut(0, parts), InvalidArgument, "makes more than 65536 ranks; cut into fewer");
    }
    refused(whole().cut(0, 256).and_then(|cut| cut.cut(1, 257)), InvalidArgument, "into 257 parts makes more than");
    refused(whole().padded(&[6, 4, 1]), InvalidArgument, "parts of [6, 4] do not fit into a padding of [6, 4, 1]");
    refused(whole().padded(&[6, 3]), InvalidArgument, "do not fit into a padding of [6, 3]; cut first");
    refused(whole().padded(&[usize::MAX, 4]), Layout, "");
    refused(whole().cut(0, 3).and_then(|cut| cut.padded(&[1, 4])), InvalidArgument, "parts of [2, 4] do not fit");
    for text in ["0", "0:", ":2", "x:2", "0:2,", "0:1+", "0:-1", "0:2;1:2"] {
        refused(Split::parse(&[6, 4], text), InvalidArgument, "does not cut axes; write axis:parts, such as 0:4");
    }
    refused(Split::parse(&[6, 4], "0:3+2"), InvalidArgument, "the parts [3, 2] of axis 0 have 5 of its 6");
    refused(Split::parse(&[6, 4], "0:18446744073709551615"), InvalidArgument, "makes more than 65536 ranks");
}

#[test]
fn redistributions() {
    use ErrorKind::{InvalidArgument, Layout};
    let (from, to) = (split(&[6, 4], "0:2"), split(&[4, 6], "0:2"));
    refused(Redistribution::new(&from, [1, 0], &to, 3), InvalidArgument, "3");
    refused(Redistribution::new(&from, [1, 1], &to, 4), InvalidArgument, "");
    refused(Redistribution::new(&from, [1, 0, 2], &to, 4), InvalidArgument, "");
    refused(Redistribution::new(&from, "rows cols -> cols", &to, 4), InvalidArgument, "");
    let says = "a source of shape [6, 4] with its axes in the order [0, 1] has shape [6, 4], and the result is split as [4, 6]";
    refused(Redistribution::new(&from, [0, 1], &to, 4), Layout, says);
    let huge = Split::whole(&[1 << 62]).unwrap();
    refused(Redistribution::new(&huge, [0], &huge, 16), InvalidArgument, "overflow; use a smaller array");
}

#[test]
fn gpus_of_a_host() {
    use ErrorKind::InvalidArgument;
    refused(Gpus::over(Vec::new()), InvalidArgument, "no device was given; give one for each rank");
    refused(Gpus::soft(0), InvalidArgument, "no device was given");
    refused(Gpus::open(&[]), InvalidArgument, "no device was given");
    refused(Gpus::soft(2).unwrap().limited_to(0), InvalidArgument, "an exchange needs a multiprocessor at least");
    let soft = host(2, 0, Checks::NONE);
    let twice = devices(&[Arc::clone(&soft[0]), Arc::clone(&soft[0])]).unwrap();
    refused(Gpus::over(twice), InvalidArgument, "or one GPU that was opened twice; open GPUs of one kind, each once");
    let alone = || Device::with_driver(Arc::new(Soft::new()) as Arc<dyn Driver>).unwrap();
    refused(Gpus::over(vec![alone(), alone()]), InvalidArgument, "they are of two kinds, of two hosts");
    let other = devices(&host(2, 0, Checks::NONE)).unwrap().pop().unwrap();
    let mixed = vec![devices(&soft).unwrap().swap_remove(0), other];
    refused(Gpus::over(mixed), ErrorKind::InvalidHandle, "of two hosts; open software GPUs together by Soft::host");
    let larger = devices(&host(3, 0, Checks::NONE)).unwrap().pop().unwrap();
    refused(
        Gpus::over(vec![devices(&soft).unwrap().swap_remove(0), larger]),
        InvalidArgument,
        "software GPU 0 cannot share its memory with number 2: its host has 2 GPUs; open them together by Soft::host",
    );
}

#[test]
fn arrays() {
    use ErrorKind::InvalidArgument;
    let gpus = gpus(2, 0, false);
    let (rows, thirds) = (split(&[6], "0:2"), split(&[6], "0:3"));
    let ranks = "the array is split among 3 ranks, and there are only 2 GPUs; split it into fewer parts";
    refused(Distributed::<u8>::alloc(&gpus, &thirds), InvalidArgument, ranks);
    refused(Distributed::scatter(&gpus, &thirds, &[0_u8; 6]), InvalidArgument, ranks);
    let one = super::gpus(1, 0, false);
    refused(Distributed::<u8>::alloc(&one, &rows), InvalidArgument, "among 2 ranks, and there is only 1 GPU;");
    let count = "the slice has 5 elements, and an array of shape [6] has 6; give a slice of as many";
    refused(Distributed::scatter(&gpus, &rows, &[0_u8; 5]), InvalidArgument, count);
    let mut array = Distributed::scatter(&gpus, &rows, &[7_u8; 6]).unwrap();
    refused(array.scatter_from(&[0; 5]), InvalidArgument, count);
    refused(array.gather_into(&mut [0; 5]), InvalidArgument, count);
    refused(array.permute([0], &thirds), InvalidArgument, ranks);
    refused(array.permute([0], &split(&[5], "")), ErrorKind::Layout, "split shape [6]");
    refused(array.permute([1], &rows), InvalidArgument, "");
    refused(array.redistribute(&thirds), InvalidArgument, ranks);
    refused(array.transpose(), InvalidArgument, "an array of shape [6] has no rows and columns to transpose");
    let large = Split::whole(&[usize::try_from(2 * super::MEMORY_BYTES).unwrap()]).unwrap();
    refused(Distributed::<u8>::alloc(&gpus, &large), ErrorKind::OutOfMemory, "");
    assert_eq!(array.gather().unwrap(), [7; 6], "refused, and yet written");
    assert_eq!(format!("{array:?}"), "Distributed<u8>([6] by 0:2)");
}

#[test]
fn exchanges() {
    use ErrorKind::{InvalidArgument, Layout};
    let (first, second) = (gpus(2, 0, false), gpus(2, 0, false));
    let (rows, columns, thirds) = (split(&[6, 4], "0:2"), split(&[6, 4], "1:2"), split(&[6, 4], "0:3"));
    let plan = |from, to| Redistribution::new(from, [0, 1], to, 4).unwrap();
    let ranks = "split among 3 ranks, and there are only 2 GPUs";
    refused(Exchange::new(&first, &plan(&rows, &thirds)), InvalidArgument, ranks);
    refused(Exchange::new(&first, &plan(&thirds, &rows)), InvalidArgument, ranks);
    let exchange = Exchange::new(&first, &plan(&rows, &columns)).unwrap();
    let source = Distributed::scatter(&first, &rows, &[1_u32; 24]).unwrap();
    let mut result = Distributed::scatter(&first, &columns, &[2_u32; 24]).unwrap();
    let elsewhere = "is on other GPUs than the exchange; make both with one `Arc<Gpus>`";
    let theirs = Distributed::<u32>::alloc(&second, &rows).unwrap();
    refused(exchange.launch(&theirs, &mut result), InvalidArgument, &format!("the source {elsewhere}"));
    let mut their_result = Distributed::<u32>::alloc(&second, &columns).unwrap();
    refused(exchange.launch(&source, &mut their_result), InvalidArgument, &format!("the result {elsewhere}"));
    let otherwise = "the source is [6, 4] by 1:2 with elements of 4 bytes, and the exchange was planned for [6, 4] by 0:2 with 4 bytes";
    let columns_of_ours = Distributed::<u32>::alloc(&first, &columns).unwrap();
    refused(exchange.launch(&columns_of_ours, &mut result), Layout, otherwise);
    let mut rows_of_ours = Distributed::<u32>::alloc(&first, &rows).unwrap();
    refused(exchange.launch(&source, &mut rows_of_ours), Layout, "the result is [6, 4] by 0:2");
    let narrow = Distributed::<u16>::alloc(&first, &rows).unwrap();
    let mut narrow_result = Distributed::<u16>::alloc(&first, &columns).unwrap();
    refused(exchange.launch(&narrow, &mut narrow_result), Layout, "with elements of 2 bytes");
    let padded = Distributed::<u32>::alloc(&first, &rows.clone().padded(&[4, 4]).unwrap()).unwrap();
    refused(exchange.launch(&padded, &mut result), Layout, "padded to [4, 4] with elements");
    assert_eq!(result.gather().unwrap(), [2; 24], "refused, and yet written");
    exchange.launch(&source, &mut result).unwrap();
    assert_eq!(result.gather().unwrap(), [1; 24]);
}

#[test]
fn measurements() {
    use ErrorKind::{InvalidArgument, Unavailable};
    let gpus = gpus(2, 0, false);
    refused(time_push(&gpus, &[(0, 2)], 64, 1), InvalidArgument, "rank 0 cannot push to 2: there are 2 ranks");
    refused(time_push(&gpus, &[(2, 0)], 64, 1), InvalidArgument, "rank 2 cannot push to 0");
    refused(time_push(&gpus, &[(0, 1), (0, 0)], 64, 1), InvalidArgument, "each of which pushes once and gets once");
    refused(time_push(&gpus, &[(0, 1), (1, 1)], 64, 1), InvalidArgument, "rank 1 cannot push to 1");
    refused(time_push(&gpus, &[(0, 1)], 64, 1), Unavailable, "");
}
