//! Says which strategies a task asks, by its class and by the place of its values.

use super::launch::Launch;
use super::strategies::{elements, images, quads, tiles};
use super::task::Task;
use crate::ops::choose::{Choosable, Considered, Offer};
use crate::ops::movement::permute::Class;
use crate::ops::tuning::Tuning;

/// One way to map elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Images,
    Tiles,
    Quads,
    /// It takes all work whose values are not launch parameters.
    Elements,
}

impl Choosable for Task {
    type Launch = Launch;
    type Strategy = Strategy;

    const LAST: Strategy = Strategy::Elements;

    fn name(strategy: Strategy) -> &'static str {
        match strategy {
            Strategy::Images => "images",
            Strategy::Tiles => "tiles",
            Strategy::Quads => "quads",
            Strategy::Elements => "elements",
        }
    }

    fn asked(&self) -> &'static [Strategy] {
        use Strategy::{Elements, Images, Quads, Tiles};

        if self.with_launch > 0 {
            return &[Images];
        }
        match self.class() {
            Class::Structs | Class::Crossed if self.is_small() => &[Tiles, Elements],
            Class::Structs | Class::Crossed => &[Tiles, Quads, Elements],
            _ if self.is_small() => &[Elements],
            Class::Alike | Class::Runs if self.keeps_places() => &[Elements, Quads],
            Class::Runs | Class::Turned => &[Quads, Elements],
            Class::Alike | Class::SteppedRuns | Class::Stepped | Class::Scattered => &[Elements],
        }
    }

    fn ask(&self, strategy: Strategy, launch: &mut Option<Launch>) -> Considered {
        match strategy {
            Strategy::Images => images::consider(self, launch),
            Strategy::Tiles => tiles::consider(self, launch),
            Strategy::Quads => quads::consider(self, launch),
            Strategy::Elements => elements::consider(self, launch),
        }
    }

    fn gain(&self) -> f64 {
        Tuning::of(self.target).permutes.estimates.gain
    }

    fn is_enough(&self, _: Strategy, best: Option<Offer>) -> bool {
        let enough = Tuning::of(self.target).arithmetic.maps.enough * self.traffic();
        best.is_some_and(|best| best.time <= enough)
    }
}
