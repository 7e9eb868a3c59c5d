use warpstride::{DeviceArray, Stream};

fn attack(stream: &Stream, array: &DeviceArray<f32>, host: &mut [f32]) {
    let mut escaped = None;
    let left = stream.scope(|s| {
        escaped = Some(s);
        Ok(())
    });
    escaped.unwrap().download(array, host).unwrap();
    println!("{left:?}");
}
