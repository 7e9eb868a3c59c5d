use super::*;
use crate::error::ErrorKind;
use crate::gpu::Module;

fn kernel(params: &str) -> Kernel {
    with_body(params, "")
}

fn with_body(params: &str, body: &str) -> Kernel {
    let registers = ".reg .b32 %r; .reg .b64 %d;";
    let text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k({params}) {{ {registers} {body} ret; }}"
    );
    Module::parse(&text).unwrap().kernel("k").unwrap().clone()
}

/// Adds the bytes of these values, whose sizes alone count.
fn placed(kernel: &Kernel, sizes: &[usize]) -> Result<Vec<usize>> {
    let args = sizes.iter().try_fold(Args::new(kernel), |args, &size| args.bytes(&vec![1; size]))?;
    let (bytes, places) = args.finish_placed()?;
    assert_eq!(bytes.len(), kernel.param_bytes());
    Ok(places)
}

#[test]
fn a_struct_takes_its_members_and_its_padding() {
    let kernel = kernel(".param .align 8 .b8 s[24], .param .align 4 .b8 pair[8], .param .u32 n");
    let args = Args::new(&kernel).value(1_u16).unwrap().value(2_u64).unwrap().value(3_u32).unwrap();
    let args = args.value(0_u32).unwrap().value(4_u32).unwrap().value(5_u32).unwrap().value(6_u32).unwrap();
    let words: Vec<u32> = args.finish().unwrap().chunks(4).map(|word| u32::from_bytes(word).unwrap()).collect();
    assert_eq!(words, [1, 0, 2, 0, 3, 0, 4, 5, 6]);
}

#[test]
fn padding_at_the_end_of_a_struct_may_be_left_out() {
    let tail = ".param .align 8 .b8 t[16], .param .u32 m, .param .u64 o";
    let places = |body: &str, sizes: &[usize]| placed(&with_body(tail, body), sizes).map_err(|error| error.to_string());
    let members = "ld.param.f64 %d, [t]; ld.param.u32 %r, [t+8];";
    for body in ["", members, "ld.param.v4.u32 {%r, %r, %r, _}, [t];"] {
        assert_eq!(places(body, &[8, 4, 4, 8]), Ok(vec![0, 8, 16, 24]), "{body}");
        assert_eq!(places(body, &[8, 4, 4, 4, 8]), Ok(vec![0, 8, 12, 16, 24]), "{body}");
        assert!(
            places(body, &[8, 4, 4]).is_err_and(|why| why.contains("argument 1 of 3, counted from 0 (4 bytes)")),
            "{body}"
        );
        let wanted = "argument 1 of 3, counted from 0 (4 bytes), \"m\" of kernel \"k\" has no value";
        assert!(places(body, &[8, 4]).is_err_and(|why| why.contains(wanted)), "{body}");
    }
    // The same bytes as a member, and as bytes that any instruction may read.
    for body in ["ld.param.u32 %r, [t+12];", "ld.param.v2.u64 {%d, %d}, [t];", "mov.b64 %d, t;"] {
        let wanted = "argument 1 of 3, counted from 0 (4 bytes), \"m\" of kernel \"k\" has 4 bytes and the value 8";
        assert!(places(body, &[8, 4, 4, 8]).is_err_and(|why| why.contains(wanted)), "{body}");
    }
    let kernel = with_body(".param .align 8 .b8 t[16]", "ld.param.u32 %r, [t+12];");
    let why = placed(&kernel, &[8, 4]).unwrap_err().to_string();
    assert!(
        why.contains("argument 0 of 1, counted from 0 (16 bytes), \"t\" of kernel \"k\" still misses 4 bytes"),
        "{why}"
    );
}

#[test]
fn values_that_fit_in_several_ways_are_refused() {
    let kernel = kernel(".param .align 8 .b8 a[16], .param .align 8 .b8 b[16]");
    let why = placed(&kernel, &[8, 4, 4, 4, 8]).map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("several ways") && why.contains("pass numbers for the padding too"), "{why}");
    assert_eq!(placed(&kernel, &[8, 4, 4, 4, 4, 8]).unwrap(), [0, 8, 12, 16, 20, 24]);
}

#[test]
fn what_does_not_go_together_names_the_parameter() {
    let kernel = kernel(".param .u64 buffer, .param .u32 k_param_1");
    let one = || Args::new(&kernel).value(0_u64).unwrap();
    for (args, said) in [
        (one().value(1_u64), "argument 1 of 2, counted from 0 (4 bytes) of kernel \"k\" has 4 bytes and the value 8"),
        (
            Args::new(&kernel).value(0_u32),
            "argument 0 of 2, counted from 0 (8 bytes), \"buffer\" of kernel \"k\" has 8 bytes",
        ),
        (Ok(one()), "argument 1 of 2, counted from 0 (4 bytes) of kernel \"k\" has no value"),
        (one().value(1_u32).unwrap().value(2_u32), "takes 2 parameters"),
    ] {
        let error = args.and_then(Args::finish).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(said), "{error}");
    }
}

#[test]
fn buffers_come_back_as_they_went() {
    let memory = Memory::new(1 << 10);
    let values = [0.5_f64, -1.0, f64::INFINITY];
    let address = memory.upload(&values).unwrap();
    assert_eq!(memory.download::<f64>(address, 3).unwrap(), values);
    assert_eq!(memory.download::<f64>(address, 4).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(memory.download::<f64>(address, usize::MAX).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(memory.upload::<u8>(&[]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
