//! The identities of devices: names, UUIDs and places on the PCI bus. None is that of a real GPU.

use warpstride::roofline::model::DeviceModel;

use crate::process::Gpu;

/// The domain of the PCI bus that software GPUs are in: `WS` in ASCII. Real GPUs are in domains
/// counted from 0.
pub(crate) const DOMAIN: u32 = 0x5753;

/// The facts of a board besides its model, from NVIDIA's data sheets.
pub(crate) struct Board {
    /// As NVIDIA's driver calls it.
    pub(crate) name: &'static str,
    /// The width of the memory's bus.
    pub(crate) bus_bits: u32,
    /// The memory's clock: two words a clock make the nominal bandwidth.
    pub(crate) memory_khz: u32,
    /// Arithmetic with f32 over that with f64.
    pub(crate) double_ratio: u32,
}

impl Board {
    pub(crate) fn of(model: &DeviceModel) -> Self {
        let board = |name, bus_bits, memory_khz, double_ratio| Self { name, bus_bits, memory_khz, double_ratio };
        match model.name {
            "h200" => board("NVIDIA H200", 6016, 3_201_000, 2),
            "a100" => board("NVIDIA A100-SXM4-80GB", 5120, 1_593_000, 2),
            "l4" => board("NVIDIA L4", 192, 6_251_000, 64),
            "t4" => board("Tesla T4", 256, 5_001_000, 32),
            "rtx4090" => board("NVIDIA GeForce RTX 4090", 384, 10_501_000, 64),
            _ => board("NVIDIA H100 80GB HBM3", 5120, 2_619_000, 2),
        }
    }
}

/// Returns the device's name: it has the modelled GPU's for programs that look for that, and says
/// first that it is a software GPU.
pub(crate) fn name(gpu: &Gpu) -> String {
    format!("warpstride software GPU ({})", Board::of(&gpu.model).name)
}

/// Returns the device's UUID: the same in all processes, for the model and the number.
pub(crate) fn uuid(model: &DeviceModel, number: usize) -> [u8; 16] {
    let mut bytes = *b"warpstride\0\0\0\0\0\0";
    bytes[12..14].copy_from_slice(&(model_number(model) as u16).to_be_bytes());
    bytes[14..].copy_from_slice(&(number as u16).to_be_bytes());
    bytes
}

fn model_number(model: &DeviceModel) -> usize {
    DeviceModel::ALL.iter().position(|known| known.name == model.name).unwrap_or(DeviceModel::ALL.len())
}

/// Returns a UUID as `nvidia-smi` and `CUDA_VISIBLE_DEVICES` write it.
pub(crate) fn uuid_text(uuid: [u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [a, b, c, d, e] = [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]].map(hex);
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
}

/// Returns the number of the device's PCI bus.
pub(crate) fn bus(gpu: &Gpu) -> u32 {
    gpu.number as u32 + 1
}

/// Returns the device's place on the PCI bus, as text.
pub(crate) fn pci(gpu: &Gpu) -> String {
    format!("{DOMAIN:04x}:{:02x}:00.0", bus(gpu))
}

/// Reads a place on the PCI bus: `domain:bus:device.function`, `domain:bus:device` or
/// `bus:device.function`, in hexadecimal. Returns the domain, the bus, the device and the function.
pub(crate) fn parse_pci(text: &str) -> Option<[u32; 4]> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let (place, function) = match text.split_once('.') {
        Some((place, function)) => (place, number(function)?),
        None => (text, 0),
    };
    let parts = place.split(':').map(number).collect::<Option<Vec<_>>>()?;
    match (&parts[..], text.contains('.')) {
        (&[domain, bus, device], _) => Some([domain, bus, device, function]),
        (&[bus, device], true) => Some([0, bus, device, function]),
        _ => None,
    }
}

/// Returns the numbers of the devices that `CUDA_VISIBLE_DEVICES` lists, of those with these UUIDs:
/// each entry is a number or the beginning of one UUID. As with NVIDIA's driver, an entry that
/// names no device ends the list, and a list that names a device twice has none.
pub(crate) fn visible(list: &str, uuids: &[String]) -> Vec<usize> {
    let mut chosen = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let Some(number) = named(entry, uuids) else { break };
        if chosen.contains(&number) {
            return Vec::new();
        }
        chosen.push(number);
    }
    chosen
}

/// Returns the number of the one device that an entry names.
fn named(entry: &str, uuids: &[String]) -> Option<usize> {
    if let Ok(number) = entry.parse::<usize>() {
        return (number < uuids.len()).then_some(number);
    }
    let entry = entry.to_ascii_lowercase();
    let mut matching = (0..uuids.len()).filter(|&number| uuids[number].to_ascii_lowercase().starts_with(&entry));
    matching.next().filter(|_| entry.starts_with("gpu-") && matching.next().is_none())
}
