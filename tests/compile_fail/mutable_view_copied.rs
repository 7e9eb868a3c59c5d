use warpstride::view::ViewMut;

fn attack<'a>(view: ViewMut<'a, f32>) -> (ViewMut<'a, f32>, ViewMut<'a, f32>) {
    (view, view)
}
