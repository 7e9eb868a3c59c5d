use warpstride::memory::DeviceBuffer;
use warpstride::ops::transpose_into;

fn attack(buffer: &mut DeviceBuffer<f32>) {
    let source = buffer.view(&[3, 3]).unwrap();
    let result = buffer.view_mut(&[3, 3]).unwrap();
    let stream = source.device().default_stream();
    transpose_into(source, result, None, stream).unwrap();
}
