use warpstride::memory::DeviceBuffer;

fn attack(buffer: &mut DeviceBuffer<f32>) {
    let view = buffer.view(&[2, 3]).unwrap();
    buffer.upload_from(&[0.0; 6]).unwrap();
    println!("{view:?}");
}
