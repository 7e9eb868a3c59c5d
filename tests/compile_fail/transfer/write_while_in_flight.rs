use warpstride::{DeviceArray, PinnedBuffer, Stream};

fn attack(stream: &Stream, array: &mut DeviceArray<f32>, host: &mut PinnedBuffer<f32>) {
    let written = stream.scope(|s| {
        s.upload(&*host, &mut *array)?;
        host[0] = 1.0;
        Ok(())
    });
    println!("{written:?}");
}
