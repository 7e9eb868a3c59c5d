use super::*;

#[test]
fn cells_fold_between_words_and_stay_in_their_columns() {
    let mut table = Table::new(&["", "expectation", "found"]);
    table.words = 3;
    table.add_row(["held", "checkers find nothing", "0 faults"]);
    table.add_row(["FELL SHORT", "argument 0 is copy:1", "3 equal; [3] = 1"]);
    let wide = "            expectation            found\n\
                held        checkers find nothing  0 faults\n\
                FELL SHORT  argument 0 is copy:1   3 equal; [3] = 1\n";
    assert_eq!(lines(&table, None), wide);
    assert_eq!(lines(&table, Some(60)), wide);
    let narrow = "            expectation   found\n\
                  held        checkers      0 faults\n\
                  \x20           find nothing\n\
                  FELL SHORT  argument 0    3 equal; [3]\n\
                  \x20           is copy:1     = 1\n";
    assert_eq!(lines(&table, Some(39)), narrow);
}
