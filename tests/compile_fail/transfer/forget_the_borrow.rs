use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: &mut Vec<f32>) {
    let forgotten = stream.scope(|s| {
        std::mem::forget(s.download(array, &mut *host));
        host.clear();
        Ok(())
    });
    println!("{forgotten:?}");
}
