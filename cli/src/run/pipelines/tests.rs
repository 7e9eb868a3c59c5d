use super::*;

fn stage(track: &str, batch: u64, start_us: f64, end_us: f64) -> Stage {
    Stage { name: track.into(), track: track.into(), batch, start_us, end_us }
}

#[test]
fn the_slower_part_is_the_bound() {
    let bound = Bound { link: 10.0, compute: 20.0 };
    assert_eq!((bound.name(), bound.frames_per_second()), ("link", 10.0));
    let bound = Bound { link: 10.0, compute: 5.0 };
    assert_eq!((bound.name(), bound.frames_per_second()), ("compute", 5.0));
}

#[test]
fn stages_of_a_lane_do_not_overlap() {
    let stages = [
        stage("source", 0, 0.0, 10.0),
        stage("source", 1, 2.0, 12.0),
        stage("source", 2, 11.0, 20.0),
        stage("work", 0, 10.0, 20.0),
        // Earlier than the end before by less than events resolve.
        stage("work", 1, 19.7, 30.0),
    ];
    let lanes = lanes(&stages);
    let shown: Vec<_> = lanes.iter().map(|lane| (lane.track, lane.number, lane.stages.len())).collect();
    assert_eq!(shown, [("source", 0, 2), ("source", 1, 1), ("work", 0, 2)]);
    for lane in &lanes {
        assert!(lane.stages.windows(2).all(|two| two[0].1[1] <= two[1].1[0]), "{lane:?}");
    }
}
