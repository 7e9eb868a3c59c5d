use warpstride::memory::DeviceBuffer;
use warpstride::ops;

fn attack(buffer: &DeviceBuffer<i32>) {
    println!("{:?}", ops::sum(buffer.view(&[4]).unwrap(), None));
}

fn main() {
    let _ = attack;
}
