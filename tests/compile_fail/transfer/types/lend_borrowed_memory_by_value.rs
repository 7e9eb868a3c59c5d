use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>) {
    let mut host = [0.0_f32; 6];
    stream.download(array, &mut host[..]).unwrap();
}
