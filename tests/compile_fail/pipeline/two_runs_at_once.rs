use warpstride::pipeline::Pipeline;

fn attack(pipeline: &mut Pipeline<f32, f32>) {
    let first = pipeline.start().unwrap();
    let second = pipeline.start().unwrap();
    drop((first, second));
}
