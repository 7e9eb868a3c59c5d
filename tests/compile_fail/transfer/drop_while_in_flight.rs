use warpstride::{DeviceArray, PinnedBuffer, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, mut host: PinnedBuffer<f32>) {
    let dropped = stream.scope(|s| {
        s.download(array, &mut host)?;
        drop(host);
        Ok(())
    });
    println!("{dropped:?}");
}
