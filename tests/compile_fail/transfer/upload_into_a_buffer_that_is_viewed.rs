use warpstride::{DeviceArray, PinnedBuffer, Stream};

fn attack(stream: &Stream, array: &mut DeviceArray<f32>, host: PinnedBuffer<f32>) {
    let view = array.view();
    let copy = stream.upload(host, &mut *array).unwrap();
    println!("{view:?} {copy:?}");
}
