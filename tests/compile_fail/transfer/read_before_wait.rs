use warpstride::{DeviceArray, PinnedBuffer, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: PinnedBuffer<f32>) {
    let copy = stream.download(array, host).unwrap();
    println!("{}", host[0]);
    copy.wait().unwrap();
}
