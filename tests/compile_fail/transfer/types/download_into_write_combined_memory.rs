use warpstride::memory::WriteCombined;
use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: WriteCombined<f32>) {
    stream.download(array, host).unwrap();
}
