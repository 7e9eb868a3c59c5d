use super::*;

fn span(track: Track, start_us: f64, end_us: f64) -> Span {
    Span { name: "stage", track, batch: 0, start_us, end_us }
}

#[test]
fn figures_are_parts_of_the_whole_time() {
    let spans = vec![
        span(Track::Source, 0.0, 10.0),
        span(Track::Upload, 10.0, 20.0),
        // Two spans of one track at once count once.
        span(Track::Upload, 15.0, 30.0),
        span(Track::Work, 25.0, 40.0),
        span(Track::Download, 40.0, 60.0),
        span(Track::Sink, 60.0, 100.0),
    ];
    let timeline = Timeline { spans };
    assert_eq!(timeline.length_us(), 100.0);
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    close(timeline.busy(Track::Upload), 0.2);
    close(timeline.busy(Track::Sink), 0.4);
    close(timeline.overlap(), 0.05);
    close(timeline.idle(), 0.5);
    assert_eq!((Timeline::default().busy(Track::Work), Timeline::default().overlap()), (0.0, 0.0));
}
