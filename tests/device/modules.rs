//! PTX: loading, entries, launches.

use std::time::Duration;

use warpstride::driver::FunctionHandle;
use warpstride::driver::trace::{Call, Method, Trace};
use warpstride::launch_shape::LaunchShape;
use warpstride::{ErrorKind, ops};

use crate::backend::{Setup, cases};
use crate::failures::refusal;
use crate::program::{AFFINE, COUNT, Program, VARIABLE, affine_params, assert_same, cover};

cases! {
    Any bad_ptx_is_refused_with_the_place,
    Any a_missing_entry_is_named,
    Any impossible_shapes_are_refused_and_do_no_harm,
    Any blocks_that_wait_for_each_other_all_fit_at_once,
    Any more_than_48_kib_of_shared_memory_are_allowed_first,
    Any variables_are_found_and_filled,
    Any queued_launches_outlive_their_module,
    Any a_kernel_is_loaded_by_its_first_launch_and_alone,
    Any a_kernel_that_was_not_loaded_is_loaded_by_the_next_launch,
    Any counting_drivers_count_and_others_say_that_they_do_not,
    SoftwareGpu("it compares the bytes of parameters with those of the entry") parameters_of_another_length_are_refused,
    SoftwareGpu("it looks at every handle that it is given") dead_functions_are_invalid_handles,
}

fn bytes_of(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn bad_ptx_is_refused_with_the_place(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let broken = AFFINE.replace("mul.wide.u32", "mul.wild.u33");
    let line = 1 + broken.lines().position(|line| line.contains("mul.wild")).unwrap();
    for (ptx, place) in [("this is not PTX".to_owned(), String::new()), (broken, format!("line {line}"))] {
        // The software GPU may accept a module with an entry that it cannot run; it reports this
        // when the entry is requested.
        let refused = program.module(&ptx).and_then(|module| {
            let function = module.function("affine")?;
            let buffer = program.buffer(4)?;
            let stream = program.stream()?;
            // SAFETY: one value in bounds.
            unsafe { stream.launch(function, &cover(1), &affine_params(&buffer, &buffer, 1, 1)) }
        });
        let error = refused.err().unwrap_or_else(|| panic!("accepted:\n{ptx}"));
        assert_eq!(error.kind(), ErrorKind::UnsupportedPtx, "{error}");
        assert!(error.to_string().contains(&place), "it names {place}: {error}");
    }
    program.module(AFFINE).unwrap();
}

fn a_missing_entry_is_named(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let module = program.module(AFFINE).unwrap();
    for name in ["affinity", "", "nul\0nul"] {
        refusal(module.function(name)).of(ErrorKind::InvalidArgument).says(&format!("{name:?}"));
    }
    module.function("affine").unwrap();
}

fn impossible_shapes_are_refused_and_do_no_harm(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let affine = program.affine().unwrap();
    let stream = program.stream().unwrap();
    let buffer = program.upload(&bytes_of([1])).unwrap();
    let params = affine_params(&buffer, &buffer, 1, 1);
    let shape = |grid, block, dynamic_shared| LaunchShape { grid, block, dynamic_shared };
    for wrong in [
        shape([0, 1, 1], [1, 1, 1], 0),
        shape([1, 1, 1], [1, 0, 1], 0),
        shape([1, 1, 1], [setup.driver.info().max_block_threads + 1, 1, 1], 0),
        shape([1, setup.driver.info().max_grid[1] + 1, 1], [1, 1, 1], 0),
        shape([1, 1, 1], [1, 1, 1], setup.driver.info().shared_bytes_per_block + 1),
    ] {
        // SAFETY: the parameters are in bounds whatever the shape.
        let launched = unsafe { stream.launch(affine.function, &wrong, &params) };
        assert_eq!(launched.map_err(|error| error.kind()), Err(ErrorKind::InvalidArgument), "{wrong:?}");
    }
    // SAFETY: as above.
    unsafe { stream.launch(affine.function, &cover(1), &params) }.unwrap();
    assert_eq!(program.download(&buffer, &stream).unwrap(), bytes_of([2]));
}

fn blocks_that_wait_for_each_other_all_fit_at_once(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (module, stream) = (program.module(COUNT).unwrap(), program.stream().unwrap());
    let (function, word) = (module.function("count").unwrap(), program.upload(&bytes_of([0])).unwrap());
    let launch = |blocks| {
        let shape = LaunchShape { grid: [blocks, 1, 1], block: [1, 1, 1], dynamic_shared: 0 };
        // SAFETY: the kernel takes the address of a word, which its threads only add to.
        unsafe { stream.launch_cooperative(function, &shape, &word.address.to_le_bytes()) }
    };
    for blocks in [1 << 20, i32::MAX as u32] {
        refusal(launch(blocks)).of(ErrorKind::InvalidArgument).says("Target::of");
    }
    // A multiprocessor runs more blocks of one thread than this.
    let most = if setup.is_soft() { 8192 } else { 8 * setup.driver.info().multiprocessors };
    if setup.is_soft() {
        refusal(launch(most + 1)).says("at most 8192");
    }
    launch(most).unwrap();
    assert_eq!(program.download(&word, &stream).unwrap(), bytes_of([most]));
}

fn more_than_48_kib_of_shared_memory_are_allowed_first(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (module, stream) = (program.module(VARIABLE).unwrap(), program.stream().unwrap());
    let function = module.function("shared").unwrap();
    let launch = |bytes| {
        let shape = LaunchShape { dynamic_shared: bytes, ..cover(1) };
        // SAFETY: it takes no parameters, and writes its own variable.
        unsafe { stream.launch(function, &shape, &[]) }
    };
    launch(48 << 10).unwrap();
    refusal(launch(64 << 10)).of(ErrorKind::InvalidArgument);
    module.allow_dynamic_shared(function, 64 << 10).unwrap();
    launch(64 << 10).unwrap();
    refusal(launch((64 << 10) + 16)).of(ErrorKind::InvalidArgument);
    refusal(module.allow_dynamic_shared(function, 1 << 20)).of(ErrorKind::InvalidArgument);
    launch(64 << 10).unwrap();
    stream.synchronize().unwrap();
}

fn variables_are_found_and_filled(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let (module, stream) = (program.module(VARIABLE).unwrap(), program.stream().unwrap());
    let host = program.pinned(16).unwrap();
    let memory = host.memory.as_ptr();
    let (factors, cells) = (module.variable("factors").unwrap(), module.variable("cells").unwrap());
    assert_eq!((factors.1, cells.1), (16, 32));
    host.set(&bytes_of([5, 6, 7, 8]));
    // SAFETY: the variable and the host's memory have 16 bytes, and live until the stream is
    // synchronised.
    unsafe { setup.driver.copy_h2d(factors.0, memory, 16, stream.handle) }.unwrap();
    let shape = LaunchShape { dynamic_shared: 100, ..cover(1) };
    // SAFETY: it takes no parameters, and writes its own variable.
    unsafe { stream.launch(module.function("shared").unwrap(), &shape, &[]) }.unwrap();
    // SAFETY: as above.
    unsafe { setup.driver.copy_d2h(memory, cells.0, 16, stream.handle) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(host.get(), bytes_of([600, 0, 0, 0]));
    for name in ["none", "", "nul\0nul"] {
        refusal(module.variable(name)).of(ErrorKind::InvalidArgument).says(&format!("{name:?}"));
    }
}

fn queued_launches_outlive_their_module(setup: &Setup) {
    setup.for_each_stream(|program, stream| {
        let buffer = program.upload(&bytes_of(0..1000)).unwrap();
        let affine = program.affine().unwrap();
        stream.affine(&affine, [&buffer, &buffer], 1000, 2).unwrap();
        drop(affine);
        let expected = bytes_of((0..1000).map(|i| i * 2 + 1));
        assert_same(&program.download(&buffer, &stream).unwrap(), &expected, "after the module went");
    });
}

/// Returns the bytes of PTX of each module that was loaded.
fn loaded(trace: &Trace) -> Vec<usize> {
    let bytes = |call: &Call| if let Call::ModuleLoad { ptx } = call { Some(*ptx) } else { None };
    trace.calls().iter().filter_map(bytes).collect()
}

fn a_kernel_is_loaded_by_its_first_launch_and_alone(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let source = device.upload(&[1_u16, 2, 3, 4, 5, 6]).unwrap();
    assert!(loaded(&trace).is_empty());
    for loads in [1, 1, 2] {
        // The third transpose only copies the elements, which is another kernel.
        let view = source.view(&[2, 3]).unwrap();
        let result = if loads == 1 { ops::transpose(view) } else { ops::contiguous(view) }.unwrap().to_vec().unwrap();
        assert_eq!(result, if loads == 1 { [1, 4, 2, 5, 3, 6] } else { [1, 2, 3, 4, 5, 6] });
        assert_eq!(loaded(&trace).len(), loads);
    }
    let whole = warpstride::ptx::text().len();
    assert!(loaded(&trace).iter().sum::<usize>() < whole / 2, "{:?} of {whole}", loaded(&trace));
    assert_eq!(trace.live().modules.len(), 2);
    drop((source, device));
    assert!(trace.live().is_empty(), "{:?}", trace.live());
}

fn a_kernel_that_was_not_loaded_is_loaded_by_the_next_launch(setup: &Setup) {
    let (trace, device) = setup.traced(&setup.driver);
    let spin = || ops::spin(&device, Duration::from_nanos(1), device.default_stream());
    for method in [Method::ModuleLoad, Method::Function] {
        trace.fail_method(method);
        refusal(spin()).says(method.name());
        trace.fail_nothing();
    }
    spin().unwrap();
    device.synchronize().unwrap();
    assert_eq!(loaded(&trace).len(), 2, "one that failed, and one that found its function later");
    drop(device);
    assert!(trace.live().is_empty(), "{:?}", trace.live());
}

fn counting_drivers_count_and_others_say_that_they_do_not(setup: &Setup) {
    if !setup.is_soft() {
        assert_eq!(setup.driver.counters(), None);
        return;
    }
    let program = Program::new(&setup.driver);
    let affine = program.affine().unwrap();
    let stream = program.stream().unwrap();
    let (source, target) = (program.upload(&bytes_of(0..128)).unwrap(), program.buffer(512).unwrap());
    let count = || setup.driver.counters().unwrap();
    let before = count();
    for launches in 1..3 {
        stream.affine(&affine, [&target, &source], 128, 1).unwrap();
        stream.synchronize().unwrap();
        // 128 threads are 4 warps; 32 lanes of 4 contiguous bytes are 4 sectors of 32 bytes.
        let counted = count() - before;
        assert_eq!((counted.global_load.requests, counted.global_load.sectors), (4 * launches, 16 * launches));
        assert_eq!((counted.global_store.requests, counted.global_store.sectors), (4 * launches, 16 * launches));
    }
}

fn parameters_of_another_length_are_refused(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let affine = program.affine().unwrap();
    let stream = program.stream().unwrap();
    for bytes in [0, 23, 25, 32] {
        // SAFETY: the software GPU compares the parameters' bytes with the entry's.
        let refused = refusal(unsafe { stream.launch(affine.function, &cover(1), &vec![0; bytes]) });
        refused.of(ErrorKind::InvalidArgument).says("affine").says(&bytes.to_string()).says("24");
    }
    // The launch is refused when it is queued, so the device continues to work.
    stream.synchronize().unwrap();
}

fn dead_functions_are_invalid_handles(setup: &Setup) {
    let program = Program::new(&setup.driver);
    let stream = program.stream().unwrap();
    let dead = program.module(AFFINE).unwrap().function("affine").unwrap();
    for handle in [dead, FunctionHandle(0)] {
        // SAFETY: the software GPU looks before it uses a handle.
        refusal(unsafe { stream.launch(handle, &cover(1), &[0; 24]) }).of(ErrorKind::InvalidHandle);
    }
}
