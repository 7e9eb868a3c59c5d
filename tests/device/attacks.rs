//! Attacks on copies that compile, each named by it: they must be harmless.
//!
//! `tests/compile_fail/transfer` has those that must not compile. A copy of the software GPU runs
//! late, so memory that was given back or used again too early shows as wrong bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use warpstride::driver::Driver;
use warpstride::driver::trace::Trace;
use warpstride::memory::Route;
use warpstride::transfer::InFlight;
use warpstride::{Device, DeviceArray, Error, ErrorKind, Result};

use crate::backend::{Setup, cases};

cases! {
    Any forget_a_download_in_flight,
    Any forget_an_upload_in_flight,
    Any forget_pinned_memory,
    Any forget_registered_memory,
    Any drop_a_download_in_flight,
    Any drop_an_upload_in_flight,
    Any drop_pageable_memory_in_flight,
    Any use_what_a_failed_copy_gave_back,
    Any drop_everything_before_the_wait,
    Any close_the_device_while_in_flight,
    Any panic_in_the_scope,
    Any leave_the_scope_by_an_error,
    Any wait_on_another_thread,
    Any lend_the_memory_of_another_device,
    Any drop_each_others_memory_in_flight,
}

const LEN: usize = 3000;

/// A device over a trace of a driver, and an array of sevens on it.
fn sevens(setup: &Setup, driver: &Arc<dyn Driver>) -> (Arc<Trace>, Device, DeviceArray<u32>) {
    let (trace, device) = setup.traced(driver);
    let array = device.array(&[LEN], &[7_u32; LEN]).unwrap();
    (trace, device, array)
}

/// Runs `attack` on a device and an array of sevens.
fn on_sevens(setup: &Setup, attack: impl Fn(&Trace, Device, DeviceArray<u32>)) {
    setup.for_each_seed(|driver| {
        let (trace, device, array) = sevens(setup, driver);
        attack(&trace, device, array);
    });
}

/// Returns the routes of a copy of ordinary memory: the driver, or the staging engine.
fn routes() -> [Route; 2] {
    [Route::Driver, Route::Staged(2.try_into().unwrap())]
}

/// Runs `attack` on a device and an array of sevens, by each route.
fn by_each_route(setup: &Setup, attack: impl Fn(&Trace, Device, DeviceArray<u32>)) {
    for route in routes() {
        on_sevens(setup, |trace, device, array| {
            device.set_route(route);
            attack(trace, device, array);
        });
    }
}

fn forget_a_download_in_flight(setup: &Setup) {
    on_sevens(setup, |_, device, array| {
        std::mem::forget(device.default_stream().download(&array, device.pinned::<u32>(LEN).unwrap()).unwrap());
        let others = [(); 3].map(|()| device.pinned_from(&[5_u32; LEN]).unwrap());
        drop(array);
        device.synchronize().unwrap();
        assert!(others.iter().flat_map(|other| other.iter()).all(|&element| element == 5));
    });
}

fn forget_an_upload_in_flight(setup: &Setup) {
    on_sevens(setup, |_, device, mut array| {
        let host = device.pinned_from(&[8_u32; LEN]).unwrap();
        std::mem::forget(device.default_stream().upload(host, &mut array).unwrap());
        let _others = [(); 3].map(|()| device.pinned_from(&[5_u32; LEN]).unwrap());
        assert_eq!(array.to_vec().unwrap(), [8; LEN]);
    });
}

fn forget_pinned_memory(setup: &Setup) {
    on_sevens(setup, |_, device, array| {
        std::mem::forget(device.pinned_from(&[5_u32; LEN]).unwrap());
        std::mem::forget(device.write_combined::<u32>(LEN).unwrap());
        assert_eq!(device.pinned_memory().in_use, 2 * (LEN * 4).next_multiple_of(4096), "they stay page-locked");
        assert_eq!(array.to_vec().unwrap(), [7; LEN]);
    });
}

/// The scope unlocks what it has locked, whatever the closure does with the value.
#[expect(clippy::forget_non_drop, reason = "the attack relies on a drop that the type need not have")]
fn forget_registered_memory(setup: &Setup) {
    on_sevens(setup, |trace, device, mut array| {
        let mut host = vec![1_u32; LEN];
        for _ in 0..2 {
            device
                .default_stream()
                .scope(|s| {
                    std::mem::forget(s.register(&mut host)?);
                    assert_eq!(trace.live().registered.len(), 1);
                    Ok(())
                })
                .unwrap();
            assert!(trace.live().registered.is_empty());
        }
        device.default_stream().scope(|s| s.upload(&host, &mut array)).unwrap();
        assert_eq!(array.to_vec().unwrap(), [1; LEN]);
    });
}

/// The pool must not give the memory out again while the copy may write it.
fn drop_a_download_in_flight(setup: &Setup) {
    on_sevens(setup, |trace, device, array| {
        for _ in 0..3 {
            let before = trace.calls().len();
            drop(device.default_stream().download(&array, device.pinned::<u32>(LEN).unwrap()).unwrap());
            let waits = |call: &_| format!("{call}").contains("synchronize");
            assert!(!trace.calls()[before..].iter().any(waits), "the drop waited");
            let other = device.pinned_from(&[5_u32; LEN]).unwrap();
            device.synchronize().unwrap();
            assert!(other.iter().all(|&element| element == 5));
        }
        assert_eq!(device.pinned_memory().in_use, 0, "all came back");
    });
}

fn drop_an_upload_in_flight(setup: &Setup) {
    on_sevens(setup, |_, device, mut array| {
        let stream = device.stream().unwrap();
        for value in 0..3 {
            drop(stream.upload(device.pinned_from(&[value; LEN]).unwrap(), &mut array).unwrap());
            let mut combined = device.write_combined(LEN).unwrap();
            combined.fill(value + 100);
            let mut second = device.alloc_array(&[LEN]).unwrap();
            drop(stream.upload(combined, &mut second).unwrap());
            // These would be the same blocks.
            let _other = device.pinned_from(&[55_u32; LEN]).unwrap();
            device.write_combined(LEN).unwrap().fill(66_u32);
            assert_eq!(array.to_vec().unwrap(), [value; LEN]);
            assert_eq!(second.to_vec().unwrap(), [value + 100; LEN]);
        }
    });
}

fn drop_pageable_memory_in_flight(setup: &Setup) {
    by_each_route(setup, |_, device, mut array| {
        let stream = device.stream().unwrap();
        drop(stream.download(&array, vec![0; LEN]).unwrap());
        // The allocator would give the same bytes out again.
        let others = [(); 4].map(|()| vec![5_u32; LEN]);
        drop(stream.upload(vec![8; LEN].into_boxed_slice(), &mut array).unwrap());
        let more = [(); 4].map(|()| vec![5_u32; LEN]);
        assert_eq!(array.to_vec().unwrap(), [8; LEN]);
        assert!(others.iter().chain(&more).flatten().all(|&element| element == 5));
    });
}

/// Whichever call fails, no copy writes the memory after the program has it back.
fn use_what_a_failed_copy_gave_back(setup: &Setup) {
    let each = |driver: &Arc<dyn Driver>, route: Route| {
        for index in 0..20 {
            let (trace, device, array) = sevens(setup, driver);
            device.set_route(route);
            trace.fail_nth(trace.calls().len() + index);
            let landed = device.default_stream().download(&array, vec![0; LEN]).and_then(InFlight::wait);
            trace.fail_nothing();
            match landed {
                Ok(host) => assert_eq!(host, [7; LEN], "call {index}"),
                Err(failed) => {
                    assert!(failed.to_string().contains("injected"), "{failed}");
                    let mut host = failed.into_host();
                    host.fill(5);
                    device.synchronize().unwrap();
                    assert_eq!(host, [5; LEN], "call {index}");
                }
            }
        }
    };
    routes().into_iter().for_each(|route| setup.for_each_seed(|driver| each(driver, route)));
}

fn drop_everything_before_the_wait(setup: &Setup) {
    by_each_route(setup, |_, device, array| {
        let stream = device.stream().unwrap();
        let flight = stream.download(&array, device.pinned::<u32>(LEN).unwrap()).unwrap();
        let pageable = stream.download(&array, vec![0; LEN]).unwrap();
        drop((array, stream, device));
        assert_eq!(flight.wait().unwrap()[..], [7; LEN]);
        assert_eq!(pageable.wait().unwrap(), [7; LEN]);
    });
}

fn close_the_device_while_in_flight(setup: &Setup) {
    by_each_route(setup, |trace, device, array| {
        let stream = device.stream().unwrap();
        drop(stream.download(&array, device.pinned::<u32>(LEN).unwrap()).unwrap());
        drop(stream.download(&array, vec![0; LEN]).unwrap());
        drop((stream, array, device));
        assert!(trace.live().is_empty(), "{:?}", trace.live());
    });
}

fn panic_in_the_scope(setup: &Setup) {
    by_each_route(setup, |trace, device, array| {
        let (mut pinned, mut pageable) = (device.pinned_zeros::<u32>(LEN).unwrap(), vec![0; LEN]);
        let mut registered = vec![0; LEN];
        let panics = || -> Result<()> {
            device.default_stream().scope(|s| {
                s.download(&array, &mut pinned)?;
                s.download(&array, &mut pageable)?;
                s.download(&array, s.register(&mut registered)?)?;
                std::panic::resume_unwind(Box::new("in the scope"))
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert!(trace.live().registered.is_empty());
        assert!([&pinned[..], &pageable, &registered].concat() == [7; 3 * LEN], "the copies have run");
    });
}

fn leave_the_scope_by_an_error(setup: &Setup) {
    by_each_route(setup, |_, device, array| {
        let mut host = vec![0; LEN];
        let left = device.default_stream().scope(|s| {
            s.download(&array, &mut host)?;
            Err::<(), _>(Error::new(ErrorKind::Io, "left early"))
        });
        assert_eq!(left.unwrap_err().to_string(), "left early");
        assert_eq!(host, [7; LEN]);
    });
}

fn wait_on_another_thread(setup: &Setup) {
    on_sevens(setup, |_, device, array| {
        let stream = device.stream().unwrap();
        let flights = [(); 3].map(|()| stream.download(&array, device.pinned::<u32>(LEN).unwrap()).unwrap());
        let [first, second, third] = flights;
        std::thread::scope(|threads| {
            threads.spawn(move || assert_eq!(first.wait().unwrap()[..], [7; LEN]));
            threads.spawn(move || drop(second));
            threads.spawn(|| assert_eq!(device.pinned_from(&[5_u32; LEN]).unwrap()[..], [5; LEN]));
        });
        assert_eq!(third.wait().unwrap()[..], [7; LEN]);
    });
}

/// A block goes back to its own device's pool, not to that of the copy's device.
fn lend_the_memory_of_another_device(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let traces = {
            let (trace, device, array) = sevens(setup, driver);
            let (theirs, other) = setup.traced(driver);
            drop(device.default_stream().download(&array, other.pinned::<u32>(LEN).unwrap()).unwrap());
            let flight = device.default_stream().download(&array, other.pinned::<u32>(LEN).unwrap()).unwrap();
            assert_eq!(flight.wait().unwrap()[..], [7; LEN]);
            device.synchronize().unwrap();
            assert_eq!((device.pinned_memory().held, other.pinned_memory().in_use), (0, 0));
            drop(device.default_stream().download(&array, other.pinned::<u32>(LEN).unwrap()).unwrap());
            [trace, theirs]
        };
        assert!(traces.iter().all(|trace| trace.live().is_empty()));
    });
}

/// Two devices that keep each other's memory until it has been copied still close.
fn drop_each_others_memory_in_flight(setup: &Setup) {
    setup.for_each_seed(|driver| {
        let traces = {
            let (trace, one, array) = sevens(setup, driver);
            let (theirs, other, elsewhere) = sevens(setup, driver);
            let (here, there) = (one.pinned::<u32>(LEN).unwrap(), other.pinned::<u32>(LEN).unwrap());
            drop(one.default_stream().download(&array, there).unwrap());
            drop(other.default_stream().download(&elsewhere, here).unwrap());
            [trace, theirs]
        };
        assert!(traces.iter().all(|trace| trace.live().is_empty()));
    });
}
