//! Random programs on the software GPU.

#[path = "../../programs/mod.rs"]
mod programs;

use programs::{Catalog, draw};

fn ptxas(text: &str) -> bool {
    let path = format!("/tmp/rnd/probe{:?}.ptx", std::thread::current().id());
    std::fs::write(&path, text).unwrap();
    let out = std::process::Command::new("/opt/wheels/x/nvidia/cu13/bin/ptxas")
        .args(["-arch", "sm_90", "-o", "/dev/null", &path])
        .output()
        .unwrap();
    out.status.success()
}

#[test]
fn write_some() {
    let catalog = Catalog::new("sm_90", ptxas);
    eprintln!("refused {:?}", catalog.refused);
    let mut bad = 0;
    for seed in 0..2000 {
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
