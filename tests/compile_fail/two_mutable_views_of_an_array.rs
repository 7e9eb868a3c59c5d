use warpstride::DeviceArray;

fn attack(array: &mut DeviceArray<f32>) {
    let first = array.view_mut();
    let second = array.view_mut();
    println!("{first:?} {second:?}");
}
