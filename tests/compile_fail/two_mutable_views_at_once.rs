use warpstride::memory::DeviceBuffer;

fn attack(buffer: &mut DeviceBuffer<f32>) {
    let first = buffer.view_mut(&[2, 3]).unwrap();
    let second = buffer.view_mut(&[2, 3]).unwrap();
    println!("{first:?} {second:?}");
}
