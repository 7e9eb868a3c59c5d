use warpstride::pipeline::Engine;

fn attack(engine: Engine<'_, f32, f32>) {
    let mut kept = None;
    let summary = engine.drive(|work| {
        kept = Some(work.output.view_mut());
        Ok(())
    });
    println!("{summary:?} {kept:?}");
}
