use warpstride::device::Device;

fn attack(device: &Device) {
    println!("{:?}", device.upload(&[true, false]));
}
