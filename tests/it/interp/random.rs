//! Random programs on the software GPU.

#[path = "../../programs/mod.rs"]
mod programs;

use programs::{Catalog, draw};

#[test]
fn write_some() {
    let catalog = Catalog::new(None).expect("all forms");
    let (from, to) = (0, 2000);
    let mut bad = 0;
    for seed in from..to {
        let program = draw(seed, &catalog);
        std::fs::write(format!("/tmp/rnd/{seed}.ptx"), program.text()).unwrap();
        if let Err(why) = program.interpret() {
            bad += 1;
            if bad < 30 {
                eprintln!("{seed}: {why}");
            }
        }
    }
    eprintln!("{bad} bad");
}
