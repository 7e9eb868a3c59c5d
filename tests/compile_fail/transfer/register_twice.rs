use warpstride::Stream;

fn attack(stream: &Stream, host: &mut [f32]) {
    let registered = stream.scope(|s| {
        let first = s.register(&mut *host)?;
        let second = s.register(&mut *host)?;
        println!("{first:?} {second:?}");
        Ok(())
    });
    println!("{registered:?}");
}
