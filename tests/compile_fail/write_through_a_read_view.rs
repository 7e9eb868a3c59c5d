use warpstride::ops::copy;
use warpstride::stream::Stream;
use warpstride::view::View;

fn attack(src: View<'_, f32>, dst: View<'_, f32>, stream: &Stream) {
    copy(src, dst, stream).unwrap();
}

fn main() {
    let _ = attack;
}
