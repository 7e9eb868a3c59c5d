use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: &mut Vec<f32>) {
    let copied = stream.scope(|s| {
        s.download(array, &mut *host)?;
        s.download(array, &mut *host)
    });
    println!("{copied:?}");
}
