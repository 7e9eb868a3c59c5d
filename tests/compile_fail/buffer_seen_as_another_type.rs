use warpstride::memory::DeviceBuffer;
use warpstride::view::View;

fn attack(buffer: &DeviceBuffer<u32>) -> View<'_, f32> {
    buffer.view(&[4]).unwrap()
}
