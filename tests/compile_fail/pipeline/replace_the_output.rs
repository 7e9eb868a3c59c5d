use warpstride::DeviceBuffer;
use warpstride::pipeline::Engine;

fn attack(engine: Engine<'_, f32, f32>, mut other: DeviceBuffer<f32>) {
    let summary = engine.drive(|work| {
        std::mem::swap(&mut work.output, &mut other);
        Ok(())
    });
    println!("{summary:?} {other:?}");
}
