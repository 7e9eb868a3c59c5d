use warpstride::{DeviceArray, PinnedBuffer, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: PinnedBuffer<f32>) {
    let first = stream.download(array, host).unwrap();
    let second = stream.download(array, host).unwrap();
    println!("{first:?} {second:?}");
}
