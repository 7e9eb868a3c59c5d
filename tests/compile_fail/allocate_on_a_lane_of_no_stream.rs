use warpstride::Device;
use warpstride::alloc::{Lane, Request};
use warpstride::driver::StreamHandle;

fn attack(device: &Device) {
    let lane = Lane { id: 7, stream: StreamHandle(0xdead_beef) };
    let block = device.allocator().alloc(&Request::new(64 << 20, &lane));
    println!("{block:?}");
}
