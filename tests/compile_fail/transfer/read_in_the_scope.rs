use warpstride::{DeviceArray, PinnedBuffer, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: &mut PinnedBuffer<f32>) {
    let read = stream.scope(|s| {
        s.download(array, &mut *host)?;
        Ok(host[0])
    });
    println!("{read:?}");
}
