use super::*;

fn module(names: &[&str]) -> Module {
    let kernels = names.iter().map(|name| format!(".visible .entry {name}() {{ ret; }}\n")).collect::<String>();
    Module::parse(&format!(".version 7.0\n.target sm_80\n.address_size 64\n{kernels}")).expect("it is PTX")
}

#[test]
fn a_kernel_is_found_by_any_name_that_no_other_has() {
    let module =
        module(&["_ZN4math5scaleIfEEvPT_S1_i", "_ZN4math5scaleIxEEvPT_S1_i", "_Z5shiftPf", "_Z5shiftPd", "plain"]);
    let found = |entry: &str| find(&module, Some(entry), "k.cu").map(Kernel::name).map_err(|error| error.to_string());
    for entry in ["math::scale<float>", "math::scale<float>(float*, float, int)", "_ZN4math5scaleIfEEvPT_S1_i"] {
        assert_eq!(found(entry).as_deref(), Ok("_ZN4math5scaleIfEEvPT_S1_i"), "{entry}");
    }
    assert_eq!(found("math::scale<long  long>").as_deref(), Ok("_ZN4math5scaleIxEEvPT_S1_i"));
    assert_eq!(found("shift(double*)").as_deref(), Ok("_Z5shiftPd"));
    assert_eq!(found("scale<long long>").as_deref(), Ok("_ZN4math5scaleIxEEvPT_S1_i"));
    assert_eq!(found("plain").as_deref(), Ok("plain"));
    // Each of C's names would be a mangled type.
    let module = self::module(&["f", "t"]);
    let names = module.kernels().map(|kernel| short(kernel.name())).collect::<Vec<_>>();
    assert_eq!(names, ["f", "t"]);
    for (entry, said) in [
        (
            "scale",
            "k.cu has 2 kernels called `scale`; name one with --entry: math::scale<float>, math::scale<long long>",
        ),
        ("shift", "k.cu has 2 kernels called `shift`; name one with --entry: shift(float*), shift(double*)"),
        (
            "scales",
            "k.cu has no kernel `scales`; name one of: math::scale<float>, math::scale<long long>, shift(float*), shift(double*), plain",
        ),
    ] {
        assert_eq!(found(entry), Err(said.into()));
    }
}

#[test]
fn texts_show_names_as_cpp_writes_them() {
    assert_eq!(readable("kernel \"_Z5naivePfPKfi\" stopped"), "kernel \"naive\" stopped");
    assert_eq!(readable("_ZN4math5scaleIfEEvPT_S1_i"), "math::scale<float>");
    assert_eq!(readable("_ZN4page5scaleB2v1B6cw51cXEPf"), "page::scale");
    for same in ["a_Z5naivePf", "_Z", "_Zugzwang", "nothing", "é_Z"] {
        assert_eq!(readable(same), same);
    }
    let hostile = format!("_Z1f{}", "St1aIS_S_E".repeat(1000));
    assert_eq!(readable(&hostile), hostile);
}
