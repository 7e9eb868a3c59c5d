use super::*;

#[test]
fn bytes_come_back_at_every_offset_and_length() {
    let memory = Memory::new(1 << 20);
    let address = memory.alloc(64).unwrap();
    for offset in 0..9_u64 {
        for len in 0..20_usize {
            memory.fill(address, 0, 64).unwrap();
            let data: Vec<u8> = (1..=len as u8).collect();
            memory.write(address + offset, &data).unwrap();
            let mut all = [0; 64];
            memory.read(address, &mut all).unwrap();
            let mut expected = [0; 64];
            expected[offset as usize..][..len].copy_from_slice(&data);
            assert_eq!(all, expected, "offset {offset}, length {len}");
            let mut back = vec![0; len];
            memory.read(address + offset, &mut back).unwrap();
            assert_eq!(back, data);
        }
    }
}

#[test]
fn ranges_of_many_chunks_are_moved_whole() {
    let memory = Memory::new(1 << 20);
    let room = 3 * CHUNK as usize + 100;
    let address = memory.alloc(room as u64).unwrap();
    let data: Vec<u8> = (0..room).map(|i| (i * 31 + i / 251) as u8).collect();
    let contents = || {
        let mut out = vec![0; room];
        memory.read(address, &mut out).unwrap();
        out
    };
    for (from, to, bytes) in [(0, 33, room - 33), (33, 0, room - 33), (0, room - 40, 40), (5, 6, 2 * CHUNK as usize)] {
        memory.write(address, &data).unwrap();
        memory.copy(address + to as u64, address + from as u64, bytes as u64).unwrap();
        let mut expected = data.clone();
        expected.copy_within(from..from + bytes, to);
        assert!(contents() == expected, "{bytes} bytes from {from} to {to}");
    }
    memory.fill(address + 1, 7, room as u64 - 2).unwrap();
    assert_eq!((contents()[0], contents()[room - 1]), (0, *data.last().unwrap()));
    assert!(contents()[1..room - 1].iter().all(|&byte| byte == 7));
}

#[test]
fn misuse_is_an_error_that_names_the_nearest_allocation() {
    let memory = Memory::new(100);
    assert_eq!(memory.alloc(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let address = memory.alloc(60).unwrap();
    let error = memory.alloc(41).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("41 bytes: 40 are free"), "{error}");
    let error = memory.write(address + 58, &[0; 3]).unwrap_err();
    assert!(error.to_string().contains("(live) has 60 bytes at 0x10000000000"), "{error}");
    assert!(memory.free(address + 4).is_err());
    memory.free(address).unwrap();
    assert_eq!(memory.used(), 0);
    let error = memory.read(address, &mut [0]).unwrap_err();
    assert!(error.to_string().contains("(freed) has 60 bytes"), "{error}");
    assert!(memory.free(address).is_err());
    assert_ne!(memory.alloc(60).unwrap(), address);
}

#[test]
fn gpus_of_a_host_reach_what_is_shared() {
    let first = Memory::new(100);
    let second = first.beside(200);
    let (ours, theirs) = (first.alloc(60).unwrap(), second.alloc(160).unwrap());
    assert_eq!([(first.limit(), first.used()), (second.limit(), second.used())], [(100, 60), (200, 160)]);
    let error = first.write(theirs, &[7]).unwrap_err();
    assert!(error.to_string().contains("(of GPU 1, which does not share it) has 160 bytes"), "{error}");
    second.share_with(&first).unwrap();
    first.write(theirs, &[7]).unwrap();
    let mut read = [0];
    second.read(theirs, &mut read).unwrap();
    assert_eq!(read, [7]);
    assert!(second.read(ours, &mut read).unwrap_err().to_string().contains("of GPU 0"), "it goes one way");
    assert!(first.free(theirs).is_err(), "a GPU frees its own memory");
    second.free(theirs).unwrap();
    assert_eq!([first.used(), second.used()], [60, 0]);
    assert!(first.share_with(&Memory::new(1)).is_err());
}

#[test]
fn more_than_the_host_has_is_an_error() {
    let memory = Memory::new(u64::MAX);
    assert_eq!(memory.alloc(1 << 62).unwrap_err().kind(), ErrorKind::OutOfMemory);
}
