use warpstride::view::{View, ViewMut};

fn attack(view: View<'_, f32>) -> ViewMut<'_, f32> {
    view.view_mut()
}
