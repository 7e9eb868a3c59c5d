use super::*;
#[cfg(feature = "interp")]
use crate::device::Device;
use crate::error::ErrorKind;

#[test]
fn backends_are_read_as_they_are_written() {
    for backend in [Backend::Auto, Backend::Cuda(0), Backend::Cuda(12), Backend::Soft] {
        assert_eq!(backend.to_string().parse(), Ok(backend));
    }
    assert_eq!("cuda".parse(), Ok(Backend::Cuda(0)));
    for text in ["", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "soft:0"] {
        let error = text.parse::<Backend>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
    }
}

#[test]
#[cfg(feature = "interp")]
fn the_software_gpu_is_always_there() {
    let soft = Device::open(Backend::Soft).unwrap();
    assert!(soft.choice().starts_with(&soft.info().name), "{}", soft.choice());
    let auto = Device::open(Backend::Auto).unwrap();
    assert!(auto.choice().len() > auto.info().name.len() + 2, "it says why: {}", auto.choice());
    let found = probe();
    assert!(found.iter().any(|device| device.backend == Backend::Soft && device.info.is_ok()));
    assert!(found.iter().any(|device| matches!(device.backend, Backend::Cuda(_))), "the list has an entry for GPUs");
}

#[test]
fn a_build_without_optimisation_says_how_to_have_one() {
    assert!(slow("0").contains("opt-level = 3") && slow("0").contains("[profile.dev.package.warpstride-interp]"));
    assert_eq!(["1", "2", "3", "s", "z"].map(slow), [""; 5]);
    // The optimisation level of this build.
    #[cfg(feature = "interp")]
    assert_eq!(
        Device::open(Backend::Soft).unwrap().choice().contains("not optimised"),
        warpstride_interp::OPT_LEVEL == "0"
    );
}
