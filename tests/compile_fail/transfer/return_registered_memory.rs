use warpstride::Stream;

fn attack(stream: &Stream, host: &mut [f32]) {
    let mut escaped = None;
    let registered = stream.scope(|s| {
        escaped = Some(s.register(host)?);
        Ok(())
    });
    println!("{registered:?} {escaped:?}");
}
