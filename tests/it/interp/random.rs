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
    let calls = std::cell::Cell::new(0);
    let catalog = Catalog::new("sm_90", |text| { calls.set(calls.get() + 1); text.is_empty() || !text.is_empty() });
    eprintln!("{} calls", calls.get());
    eprintln!("refused {:?}", catalog.refused);
    let mut bad = 0;
    for seed in 0..400 {
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
