//! Measures the ways of a permute, and keeps the fastest.

use super::measure::{Rotation, check_has_times, time};
use crate::device::Device;
use crate::error::Result;
use crate::ops::{PermutePlan, Target};
use crate::tuning_file::TuningFile;

/// Timed launches of a way.
const SAMPLES: usize = 15;

/// The part of the best time so far that another way may take to be kept: less is noise.
const GAIN: f64 = 0.99;

/// The ways of a plan, as they were measured.
struct Measured {
    fastest: PermutePlan,
    /// Its time.
    ms: f64,
    /// The least time of all ways.
    least_ms: f64,
    /// The time of the way that was planned.
    planned_ms: f64,
}

impl PermutePlan {
    /// Times every kernel that takes the work, and several cuts of it, on arrays of its own, and
    /// returns the plan that was the fastest. From then on all plans of the same work for this
    /// device are that one, also those that `copy_into` and `permute` make, and those of later
    /// programs: the user's tuning file ([`Device::tuning_file`]) keeps it.
    ///
    /// The file has a section for each GPU, this version of the crate and its kernels. A section
    /// that is stale is ignored, with a note, until a plan that is measured replaces it. Nothing
    /// else measures a plan. The arrays take a few times the bytes of the work or of the L2 cache,
    /// and the time is that of some hundred launches.
    ///
    /// # Errors
    ///
    /// `Unavailable` on the software GPU, whose times say nothing about a GPU, and where the system
    /// names no folder for the file; `OutOfMemory` if the arrays do not fit; `Io` if the file
    /// cannot be written; else the driver's error.
    ///
    /// ```no_run
    /// use warpstride::layout::Layout;
    /// use warpstride::ops::{Align, PermutePlan, Target};
    /// use warpstride::{Backend, Device};
    ///
    /// let device = Device::open(Backend::Cuda(0))?;
    /// let to = Layout::row_major(&[31, 3, 2_705_679])?;
    /// let from = Layout::row_major(&[2_705_679, 31, 3])?.permuted_axes(&[1, 2, 0])?;
    /// let (align, target) = (Align::ALLOCATION, Target::of(&device));
    /// let plan = PermutePlan::new(&from, align, &to, align, 1, target)?;
    /// println!("planned {plan}, measured {}", plan.measure(&device)?);
    /// # Ok::<(), warpstride::Error>(())
    /// ```
    ///
    /// The idea is that of FFTW's plans (Frigo and Johnson, 2005).
    pub fn measure(&self, device: &Device) -> Result<Self> {
        self.measure_beside(device)?;
        Ok(self.for_target(Target::of(device)))
    }

    /// Measures the ways and keeps the fastest, as [`PermutePlan::measure`], and returns how many
    /// times as long the kernel takes that is planned without measurements; 1 if there are no
    /// elements.
    ///
    /// # Errors
    ///
    /// As [`PermutePlan::measure`].
    #[doc(hidden)]
    pub fn measure_beside(&self, device: &Device) -> Result<f64> {
        check_has_times(device)?;
        let path = TuningFile::to_keep()?;
        let Some(Measured { fastest, least_ms, planned_ms, .. }) =
            self.unmeasured(Target::of(device)).measured_ways(device)?
        else {
            return Ok(1.0);
        };
        if let Some(kept) = fastest.kept_as() {
            TuningFile::keep(&path, device.info(), kept, |plans| device.follow(plans))?;
        }
        Ok(planned_ms / least_ms)
    }

    /// Times the ways of a plan that was made without measurements; `None` if there are no
    /// elements.
    fn measured_ways(&self, device: &Device) -> Result<Option<Measured>> {
        let mut rotation = Rotation::new(device, &self.rooms());
        let steps = self.rooms().map(Rotation::padded);
        let [src, dst] = steps.map(|step| device.zeros::<u8>(step.saturating_mul(rotation.sets())));
        let (src, mut dst, stream, mut measured) = (src?, dst?, device.default_stream(), None::<Measured>);
        for plan in self.ways() {
            let timing = time(device, stream, SAMPLES, || {
                let set = rotation.advance();
                plan.launch_between(&src, &mut dst, steps.map(|step| set * step), stream)
            })?;
            let (ms, is_planned) = (timing.median_ms(), plan.launches_as(self));
            let known = measured.get_or_insert(Measured { fastest: plan, ms, least_ms: ms, planned_ms: ms });
            known.planned_ms = if is_planned { ms } else { known.planned_ms };
            known.least_ms = known.least_ms.min(ms);
            if ms < GAIN * known.ms {
                (known.fastest, known.ms) = (plan, ms);
            }
        }
        Ok(measured)
    }
}
