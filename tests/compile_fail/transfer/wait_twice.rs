use warpstride::PinnedBuffer;
use warpstride::transfer::InFlight;

fn attack(copy: InFlight<PinnedBuffer<f32>>) {
    let first = copy.wait();
    let second = copy.wait();
    println!("{first:?} {second:?}");
}
