use warpstride::memory::WriteCombined;

fn attack(host: &WriteCombined<f32>) {
    println!("{}", host[0]);
}
