use warpstride::view::ViewMut;

fn attack(row: ViewMut<'_, f32>) -> ViewMut<'_, f32> {
    row.broadcast(&[4, 6]).unwrap()
}
