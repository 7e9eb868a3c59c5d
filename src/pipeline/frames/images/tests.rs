use std::io::Cursor;

use image::imageops::{self, FilterType};
use image::{ImageFormat, Luma, LumaA, Rgb, RgbImage, Rgba};
use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// An image without two equal pixels nearby.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(7 * x + y) as u8, (x + 11 * y) as u8, (x * y) as u8]))
}

fn frame(images: &Images, number: u64) -> Result<Vec<u8>> {
    let mut frame = vec![0; images.elements()];
    images.fill(number, &mut frame)?;
    Ok(frame)
}

#[test]
fn files_are_frames_in_the_order_of_their_names() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let colours = picture(6, 5);
    colours.save(at("b.png")).unwrap();
    colours.save_with_format(at("a.JPG"), ImageFormat::Jpeg).unwrap();
    image::GrayImage::from_pixel(6, 5, Luma([77])).save(at("d.png")).unwrap();
    image::RgbaImage::from_pixel(6, 5, Rgba([1, 2, 3, 128])).save(at("e.png")).unwrap();
    image::ImageBuffer::from_pixel(6, 5, Rgb([0xffff_u16, 0x8080, 0x80])).save(at("f.png")).unwrap();
    image::ImageBuffer::from_pixel(6, 5, LumaA([0x0181_u16, 7])).save(at("g.png")).unwrap();
    image::GrayImage::from_pixel(6, 5, Luma([200])).save(at("h.jpeg")).unwrap();
    let stack: Vec<u8> = (0..2 * 90).map(|at| at as u8).collect();
    npy::write(&mut File::create(at("c.npy")).unwrap(), "|u1", &[2, 5, 6, 3], &stack).unwrap();
    npy::write(&mut File::create(at("z.npy")).unwrap(), "|u1", &[5, 6, 3], &stack[..90]).unwrap();
    fs::write(at("notes.txt"), "no image").unwrap();
    fs::create_dir(at("folder.png")).unwrap();

    let images = Images::open(folder.path(), None).unwrap();
    assert_eq!((images.frames(), images.shape()), (10, [5, 6, 3]));
    assert_eq!(images.skipped(), [at("folder.png"), at("notes.txt")]);
    // JPEG loses a little, and PNG nothing.
    let lossy = image::open(at("a.JPG")).unwrap().into_rgb8();
    assert_eq!(frame(&images, 0).unwrap(), *lossy.as_raw());
    assert_eq!(frame(&images, 1).unwrap(), *colours.as_raw());
    assert_eq!(frame(&images, 2).unwrap(), stack[..90]);
    assert_eq!(frame(&images, 3).unwrap(), stack[90..]);
    assert_eq!(frame(&images, 4).unwrap(), [77; 90]);
    assert_eq!(frame(&images, 5).unwrap(), [1, 2, 3].repeat(30));
    assert_eq!(frame(&images, 6).unwrap(), [255, 128, 0].repeat(30));
    assert_eq!(frame(&images, 7).unwrap(), [1; 90]);
    assert_eq!(frame(&images, 8).unwrap(), [200; 90]);
    assert_eq!(frame(&images, 9).unwrap(), stack[..90]);
    assert!(frame(&images, 10).is_err() && images.fill(0, &mut [0; 89]).is_err());
}

#[test]
fn another_size_is_an_error_or_resized() {
    let folder = folder();
    picture(6, 4).save(folder.path().join("a.png")).unwrap();
    picture(4, 6).save(folder.path().join("b.png")).unwrap();
    let images = Images::open(folder.path(), None).unwrap();
    let error = frame(&images, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    for part in ["b.png has 6 x 4 pixels", "--size"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let images = Images::open(folder.path(), Some([3, 2])).unwrap();
    for number in 0..2 {
        let (first, second) = (picture(6, 4), picture(4, 6));
        let expected = imageops::resize([&first, &second][number], 2, 3, FilterType::Triangle);
        assert_eq!(frame(&images, number as u64).unwrap(), *expected.as_raw());
    }
    for wrong in [[0, 5], [5, 0], [1 << 20, 1], [1 << 15, 1 << 15]] {
        assert_eq!(Images::open(folder.path(), Some(wrong)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn an_array_that_is_no_image_is_named() {
    let folder = folder();
    npy::write(&mut File::create(folder.path().join("d.npy")).unwrap(), "<f4", &[1, 1, 3], &[0; 12]).unwrap();
    let error = Images::open(folder.path(), None).unwrap_err();
    assert!(error.to_string().contains("d.npy") && error.to_string().contains("H, W, 3"), "{error}");
}

/// A PNG whose header claims more pixels than any memory holds.
#[test]
fn claims_are_checked_before_memory_is_taken() {
    let folder = folder();
    let path = folder.path().join("a.png");
    picture(2, 2).save(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for side in [0x0000_ffff_u32, 0x7fff_ffff] {
        bytes[16..20].copy_from_slice(&side.to_be_bytes());
        bytes[20..24].copy_from_slice(&side.to_be_bytes());
        let checksum = crc32fast::hash(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
        fs::write(&path, &bytes).unwrap();
        let error = Images::open(folder.path(), None).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains("a.png"), "{error}");
    }
}

/// The files of one picture in both formats.
fn encoded() -> [Vec<u8>; 2] {
    [ImageFormat::Png, ImageFormat::Jpeg].map(|format| {
        let mut bytes = Cursor::new(Vec::new());
        picture(29, 17).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    })
}

/// A lenient decoder fills the rest of such an image with pixels of its own.
#[test]
fn a_cut_image_is_an_error_that_names_the_file() {
    let folder = folder();
    let path = folder.path().join("cut.png");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Images::open(folder.path(), None).and_then(|images| frame(&images, 0))
    };
    for whole in encoded() {
        let pixels = read(&whole).unwrap();
        for cut in (0..whole.len()).filter(|&cut| cut % 7 == 0 || cut + 50 > whole.len()) {
            let error = read(&whole[..cut]).unwrap_err();
            assert!(error.kind() == ErrorKind::Io && error.to_string().contains("cut.png"), "{cut}: {error}");
            // A download that has reserved the room of the whole file.
            let reserved = read(&[&whole[..cut], &vec![0; whole.len() - cut]].concat());
            assert!(reserved.is_err() || reserved.is_ok_and(|found| found == pixels), "{cut}");
            // A program that repairs cut images so.
            if whole.starts_with(&[0xff, 0xd8]) && cut + 2 < whole.len() {
                let error = read(&[&whole[..cut], &[0xff, 0xd9][..]].concat()).unwrap_err();
                assert!(error.kind() == ErrorKind::Io && error.to_string().contains("cut.png"), "{cut}: {error}");
            }
        }
        // Programs append bytes of their own behind an image.
        assert_eq!(read(&[&whole[..], b"and more"].concat()).unwrap(), pixels);
    }
}

/// Any bytes, and images with some bytes changed, are images or errors.
#[test]
fn no_file_is_too_hostile() {
    use crate::random::SplitMix64;

    let folder = folder();
    let seeds = encoded();
    let mut random = SplitMix64(1);
    let mut accepted = 0;
    for round in 0..600 {
        let mut bytes = seeds[round % 2].clone();
        if random.below(3) == 0 {
            bytes.truncate(4 * random.below(4) as usize);
            bytes.extend((0..random.below(300)).map(|_| random.draw() as u8));
        } else {
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.draw() as u8;
            }
        }
        fs::write(folder.path().join("a.png"), &bytes).unwrap();
        let Ok(images) = Images::open(folder.path(), Some([3, 3])) else { continue };
        accepted += usize::from(frame(&images, 0).is_ok());
        let Ok(images) = Images::open(folder.path(), None) else { continue };
        if images.elements() < 1 << 20 {
            let _ = frame(&images, 0);
        }
    }
    assert!(accepted > 10, "{accepted} were accepted");
}
