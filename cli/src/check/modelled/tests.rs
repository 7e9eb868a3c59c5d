use super::*;

fn error(text: &str) -> String {
    text.parse::<Expect>().err().expect("it is wrong")
}

#[test]
fn expectations_are_of_counters_or_of_the_model() {
    assert!(matches!("store.sectors <= ideal".parse(), Ok(Expect::Counted(_))));
    for text in ["model.ms<=0.1", "model.bound == \"L2\"", "occupancy > 0.5", " instructions_per_byte  < 20"] {
        assert!(matches!(text.parse(), Ok(Expect::Modelled(_))), "{text}");
    }
    assert!(error("model.time <= 1").contains("use model.ms, model.bound, occupancy, instructions_per_byte"));
    assert!(error("model.ms").contains("has no comparison"));
    assert!(error("model.ms <= fast").contains("`fast` is not a number"));
    assert!(error("model.ms <= nan").contains("is not a number"));
    assert!(error("model.bound <= memory").contains("by == or !="));
    assert!(error("model.bound == speed").contains("memory, L2, shared, instructions, latency"));
}
