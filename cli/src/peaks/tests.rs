use warpstride::device::Device;

use super::*;

fn gpu() -> DeviceInfo {
    let soft = Device::open(Backend::Soft).expect("the software GPU is always there");
    let pci_bus_id = Some("00000000:01:00.0".into());
    DeviceInfo { name: "A GPU".into(), driver_version: "13.0".into(), pci_bus_id, ..soft.info().clone() }
}

fn identity(uuid: &str, release: &str) -> Option<Identity> {
    Some(Identity { uuid: uuid.into(), release: release.into() })
}

fn kept(with: &With, low_clocks: bool) -> Kept {
    let best = json!({ "gbps": 1.0, "shape": { "steps": 1, "threads": 128 } });
    let peaks = json!({
        "nominal": null, "bytes": 1, "read": best, "write": best, "copy": best, "memcpy": 1.0, "sizes": [],
        "low_clocks": low_clocks,
    });
    Kept { date: "today".into(), with: with.clone(), peaks: serde_json::from_value(peaks).expect("ceilings") }
}

#[test]
fn ceilings_are_of_one_gpu_and_of_what_they_were_measured_with() {
    let place = Place::new(&gpu(), identity("GPU-1", "580.159.04"));
    let text = |with: &With| serde_json::to_vec(&kept(with, false)).expect("text");
    assert_eq!(place.read(&text(&place.with)).expect("the same").date, "today");
    for other in [
        With { version: "0.0.9".into(), ..place.with.clone() },
        With { ptx: format!("{PROVENANCE}0"), ..place.with.clone() },
        Place::new(&gpu(), identity("GPU-1", "580.95.05")).with,
        Place::new(&gpu(), None).with,
    ] {
        assert!(place.read(&text(&other)).is_none(), "{other:?} for {:?}", place.with);
    }
    assert!(place.read(b"{\"date\": \"today\", \"version\": \"0.1.0\"").is_none());
    // Wherever it is plugged in.
    let moved = DeviceInfo { ordinal: 1, pci_bus_id: None, ..gpu() };
    assert_eq!(Place::new(&moved, identity("GPU-1", "580.159.04")).file, place.file);
    let slice = DeviceInfo { name: "A GPU MIG 1g.10gb".into(), ..gpu() };
    for other in [
        Place::new(&gpu(), identity("GPU-2", "580.159.04")),
        Place::new(&slice, identity("GPU-1", "580.159.04")),
        Place::new(&gpu(), None),
        Place::new(&moved, None),
    ] {
        assert_ne!(other.file, place.file);
    }
}

#[test]
fn ceilings_of_low_clocks_are_not_kept() {
    let place = Place::new(&gpu(), None);
    let error = place.keep(&kept(&place.with, true)).unwrap_err();
    assert!(error.to_string().contains("clocks were low"), "{error}");
}
