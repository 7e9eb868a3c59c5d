//! Windows of GPUs that share their memory in one process.

use super::engine::Window;
use crate::error::{Result, counted, require};
use crate::memory::DeviceBuffer;

/// Windows that the ranks open together.
#[derive(Debug, Default)]
pub(super) struct Windows(Vec<Opening>);

/// A window, for which each rank brings its memory.
#[derive(Debug)]
enum Opening {
    Begun { bytes: u64, memory: Vec<Option<DeviceBuffer<u8>>> },
    Open { window: Window, _memory: Memory },
}

/// The memory of all ranks.
#[derive(Debug)]
struct Memory(Vec<DeviceBuffer<u8>>);

impl Windows {
    /// Returns a window that a rank has opened before and that has room. `opened` is the number of
    /// its windows.
    pub(super) fn known(&self, bytes: u64, opened: usize) -> Option<Window> {
        self.0.iter().take(opened).find_map(|opening| match opening {
            Opening::Open { window, .. } if window.bytes >= bytes => Some(window.clone()),
            _ => None,
        })
    }

    /// Takes a rank's memory for the window with a number. The last rank opens it.
    pub(super) fn bring(
        &mut self,
        number: usize,
        (rank, ranks): (usize, usize),
        (bytes, mine): (u64, DeviceBuffer<u8>),
    ) -> Result<()> {
        if self.0.len() == number {
            self.0.push(Opening::Begun { bytes, memory: (0..ranks).map(|_| None).collect() });
        }
        let Some(Opening::Begun { bytes: wanted, memory }) = self.0.get_mut(number) else { return Ok(()) };
        require!(
            *wanted == bytes,
            Peer,
            "rank {rank} asks for a window of {}, and another rank asked for {wanted}; give all ranks one plan",
            counted(bytes, "byte")
        );
        memory[rank] = Some(mine);
        if memory.iter().all(Option::is_some) {
            let memory: Vec<DeviceBuffer<u8>> = memory.iter_mut().filter_map(Option::take).collect();
            let addresses = memory.iter().map(|buffer| buffer.memory().address()).collect();
            let window = Window { addresses, bytes };
            self.0[number] = Opening::Open { window, _memory: Memory(memory) };
        }
        Ok(())
    }

    /// Returns the window with a number, once all ranks have brought their memory; else the first
    /// rank that has not.
    pub(super) fn opened(&self, number: usize) -> Result<Window, usize> {
        match &self.0[number] {
            Opening::Open { window, .. } => Ok(window.clone()),
            Opening::Begun { memory, .. } => Err(memory.iter().position(Option::is_none).unwrap_or(0)),
        }
    }
}

impl Drop for Memory {
    /// Waits until no rank uses it any more: the buffers do not know the streams of the peers.
    fn drop(&mut self) {
        for device in self.0.iter().map(DeviceBuffer::device) {
            // A device whose wait fails has stopped its work.
            let _ = device.default_stream().synchronize();
        }
    }
}
