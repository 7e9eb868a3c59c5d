use super::*;

#[test]
fn a_name_stays_whole_where_words_fold() {
    let folds = [Fold::Words, Fold::Names];
    let fitted = |width| fitted(&table(), Some(width), &folds).rows.remove(0);
    assert_eq!(fitted(25)[..2], ["permute u8\n2x3 by 1,0", "0.1234"]);
    assert_eq!(fitted(64)[1], "tile_of_bytes_b8");
}

fn table() -> Table {
    let mut table = Table::new(&["case", "kernel", "ms", "p10", "GB/s", "load sectors/ideal"]);
    table.words = 2;
    table.add_row(["permute u8 2x3 by 1,0", "tile_of_bytes_b8", "0.1234", "0.1", "12.5", "1.00x"]);
    table
}

#[track_caller]
fn is_fitted(width: usize, header: &[&str], row: &[&str], left_out: &[&str]) {
    let fitted = fitted(&table(), Some(width), &[Fold::Names]);
    assert_eq!(
        (fitted.header, fitted.left_out),
        (header.iter().map(ToString::to_string).collect(), left_out.iter().map(ToString::to_string).collect())
    );
    assert_eq!(fitted.rows, [row]);
}

#[test]
fn a_table_folds_its_headings_and_words_and_leaves_columns_out_in_order() {
    let whole = ["case", "kernel", "ms", "p10", "GB/s", "load sectors/ideal"];
    let row = ["permute u8 2x3 by 1,0", "tile_of_bytes_b8", "0.1234", "0.1", "12.5", "1.00x"];
    is_fitted(87, &whole, &row, &[]);
    let header = ["case", "kernel", "ms", "p10", "GB/s", "load\nsectors/\nideal"];
    is_fitted(72, &header, &row, &[]);
    let header = ["case", "kernel", "ms", "GB/s", "load\nsectors/\nideal"];
    is_fitted(68, &header, &["permute u8 2x3 by 1,0", row[1], row[2], row[4], row[5]], &["p10"]);
    let header = ["case", "ms", "GB/s", "load\nsectors/\nideal"];
    is_fitted(50, &header, &[row[0], row[2], row[4], row[5]], &["kernel", "p10"]);
    let header = ["case", "ms", "GB/s"];
    let left_out = ["kernel", "p10", "load sectors/ideal"];
    is_fitted(39, &header, &[row[0], row[2], row[4]], &left_out);
    // It is as narrow as it can be.
    is_fitted(10, &header, &["permute\nu8 2x3\nby 1,0", row[2], row[4]], &left_out);
}
