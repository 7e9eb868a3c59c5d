use warpstride::memory::DeviceBuffer;
use warpstride::ops;

fn attack(buffer: &DeviceBuffer<i32>) {
    let a = buffer.view(&[4]).unwrap();
    println!("{:?}", ops::dot(a, a));
}
