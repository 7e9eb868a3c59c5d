use warpstride::memory::DeviceBuffer;
use warpstride::ops;

fn attack(buffer: &DeviceBuffer<i32>) {
    let a = buffer.view(&[4]).unwrap();
    println!("{:?}", ops::add::<i32>(a, a));
    println!("{:?}", ops::sub::<i32>(a, a));
    println!("{:?}", ops::mul::<i32>(a, a));
    println!("{:?}", ops::div::<i32>(a, a));
    println!("{:?}", ops::scale(2_i32, a));
    println!("{:?}", ops::triad(a, 2_i32, a));
    println!("{:?}", ops::mean(a, None));
}
