use super::*;

#[test]
fn offers_travel_as_bytes() {
    let offer = Offer { host: 0x0102_0304_0506_0708, bytes: u64::MAX - 3, bus: [7; BUS], handle: [9; 64] };
    assert_eq!(Offer::of_bytes(&offer.to_bytes()), offer);
    assert_ne!(Offer::of_bytes(&Offer::none().to_bytes()), offer);
}

#[test]
fn ranks_of_two_hosts_or_without_memory_do_not_share() {
    let offer = Offer { host: 5, ..Offer::none() };
    assert!(Offer::are_of_one_host(&[offer, offer]));
    assert!(!Offer::are_of_one_host(&[offer, Offer { host: 6, ..offer }]));
    assert!(!Offer::are_of_one_host(&[offer, Offer::none()]));
}

#[test]
fn windows_of_two_sizes_are_refused() {
    let offer = Offer { bytes: 256, ..Offer::none() };
    assert!(Offer::check_bytes(&[offer, offer]).is_ok());
    let error = Offer::check_bytes(&[offer, offer, Offer { bytes: 512, ..offer }]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Peer);
    assert!(error.to_string().contains("rank 2 asks for a window of 512 bytes, and rank 0 for 256"), "{error}");
}
