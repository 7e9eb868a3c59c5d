use warpstride::memory::DeviceBuffer;

fn attack(buffer: DeviceBuffer<f32>) {
    let view = buffer.view(&[2, 3]).unwrap();
    drop(buffer);
    println!("{:?}", view.t());
}
