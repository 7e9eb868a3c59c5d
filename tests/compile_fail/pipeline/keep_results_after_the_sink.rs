use warpstride::pipeline::Drain;

fn attack(drain: &Drain<'_, f32, f32>) {
    let mut kept: &[f32] = &[];
    let taken = drain.take(|_, results| {
        kept = results;
        Ok(())
    });
    println!("{taken:?} {kept:?}");
}
