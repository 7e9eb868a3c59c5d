use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>) {
    let copied = stream.scope(|s| {
        let mut host = vec![0.0; 6];
        s.download(array, &mut host)
    });
    println!("{copied:?}");
}
