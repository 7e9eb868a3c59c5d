use warpstride::view::{View, ViewMut};

fn attack<'a>(mut whole: ViewMut<'a, f32>) -> (ViewMut<'a, f32>, View<'a, f32>) {
    let inner: ViewMut<'a, f32> = whole.view_mut();
    let read: View<'a, f32> = whole.view();
    (inner, read)
}
