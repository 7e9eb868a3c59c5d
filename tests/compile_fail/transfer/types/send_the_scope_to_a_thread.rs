use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: &mut [f32]) {
    let sent = stream.scope(|s| {
        std::thread::scope(|threads| {
            threads.spawn(|| s.download(array, host));
        });
        Ok(())
    });
    println!("{sent:?}");
}
