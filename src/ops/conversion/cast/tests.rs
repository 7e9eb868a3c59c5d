use super::*;

fn numbers() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_complex()).collect()
}

#[test]
fn every_pair_has_the_kernel_of_its_name_or_keeps_its_bits() {
    let mut kernels = 0;
    for from in &numbers() {
        for to in &numbers() {
            match entry(*from, *to).unwrap() {
                Some(entry) => {
                    let (kernel_from, kernel_to) = kernel(*from, *to);
                    assert_eq!(entry.name(), format!("cast_{kernel_from}_{kernel_to}"), "{from} to {to}");
                    kernels += usize::from((kernel_from, kernel_to) == (*from, *to));
                }
                None => {
                    let (from, to) = kernel(*from, *to);
                    assert_eq!(from, to, "types without a kernel keep their bits");
                }
            }
        }
    }
    assert_eq!(kernels, CAST.entries().len());
}
