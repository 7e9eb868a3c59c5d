use warpstride::device::Device;
use warpstride::view::View;

fn attack(device: &Device) -> View<'_, f32> {
    let buffer = device.upload(&[1.0f32; 6]).unwrap();
    buffer.view(&[2, 3]).unwrap()
}
