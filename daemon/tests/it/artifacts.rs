//! Stored files: whole or not there, the same bytes once, and every damaged byte noticed.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::Command;

use heldout::artifacts::Archive;
use heldout::clock::Clock;
use heldout::domain::records::Artifact;
use heldout::domain::refusal::Code;
use sha2::{Digest as _, Sha256};

/// Tells a child of this test binary where to die.
const CHILD_FOLDER: &str = "HELDOUT_TEST_ARCHIVE";

fn archive(folder: &Path) -> Archive {
    Archive::new(folder, Clock::held("2026-12-01T00:00:00Z".parse().unwrap()))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * i / 7 % 251) as u8).collect()
}

fn publish(archive: &Archive, bytes: &[u8]) -> Artifact {
    archive.publish("table", "candidate", None, |out| out.write_all(bytes)).unwrap()
}

/// Every file below `folder`, relative, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_published_is_read_back_under_its_digest() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    for len in [0, 1, 4096, 3_000_001] {
        let plain = bytes(len);
        let artifact = publish(&archive, &plain);
        assert_eq!(artifact.sha256, hex::encode(Sha256::digest(&plain)));
        assert_eq!(artifact.bytes, len as u64);
        let path = archive.path(&artifact.sha256).unwrap();
        let stored = std::fs::read(&path).unwrap();
        assert_eq!(artifact.stored_sha256, hex::encode(Sha256::digest(&stored)));
        assert_eq!(artifact.stored_bytes, stored.len() as u64);
        let mut back = Vec::new();
        archive.open(&artifact.sha256).unwrap().read_to_end(&mut back).unwrap();
        assert_eq!(back, plain);
        archive.verify(&artifact).unwrap();
        assert!(archive.holds(&artifact.sha256));
    }
}

#[test]
fn the_same_bytes_are_one_file_and_two_writers_both_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let plain = bytes(500_000);
    let first = archive.stage(|out| out.write_all(&plain)).unwrap();
    let second =
        archive.stage(|out| plain.chunks(777).try_for_each(|part| out.write_all(part))).unwrap();
    let first = archive.settle(first, "table", "a", None).unwrap();
    let second = archive.settle(second, "table", "a", None).unwrap();
    assert_eq!(first, second);
    assert_eq!(files(folder.path()), [format!("{}/{}.zst", &first.sha256[..2], first.sha256)]);
}

#[test]
fn a_writer_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let refusal = archive
        .publish("table", "candidate", None, |out| {
            out.write_all(&bytes(100_000))?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
    assert_eq!(refusal.code, Code::OverBudget);
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

/// Not a test of its own: the body of the child that the next test kills.
#[test]
#[ignore = "run by a_process_that_dies_publishes_nothing in a child process"]
fn child_that_dies() {
    let Ok(folder) = std::env::var(CHILD_FOLDER) else { return };
    let archive = archive(Path::new(&folder));
    let dies_inside = std::env::var("HELDOUT_TEST_DIES").unwrap() == "inside";
    let staged = archive.stage(|out| {
        out.write_all(&bytes(300_000))?;
        if dies_inside {
            std::process::abort();
        }
        Ok(())
    });
    let _whole_but_unnamed = staged.unwrap();
    std::process::abort();
}

#[test]
fn a_process_that_dies_publishes_nothing() {
    for moment in ["inside", "before-the-rename"] {
        let folder = tempfile::tempdir().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "artifacts::child_that_dies", "--ignored"])
            .env(CHILD_FOLDER, folder.path())
            .env("HELDOUT_TEST_DIES", moment)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "the child was meant to die {moment}");
        let left = files(folder.path());
        assert_eq!(left.len(), 1, "{moment}: {left:?}");
        assert!(left[0].starts_with(".partial-"), "{moment}: {left:?}");

        let archive = archive(folder.path());
        let sha256 = hex::encode(Sha256::digest(bytes(300_000)));
        assert!(!archive.holds(&sha256));
        assert_eq!(archive.open(&sha256).unwrap_err().code, Code::NotFound);
        assert_eq!(archive.recover().unwrap(), 1);
        assert_eq!(files(folder.path()), Vec::<String>::new());
        assert_eq!(publish(&archive, &bytes(300_000)).sha256, sha256);
        assert_eq!(archive.recover().unwrap(), 0);
    }
}

#[test]
fn every_kind_of_damage_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let plain = bytes(200_000);
    let artifact = publish(&archive, &plain);
    let path = archive.path(&artifact.sha256).unwrap();
    let good = std::fs::read(&path).unwrap();

    let mut damaged: Vec<(String, Vec<u8>)> = (0..good.len())
        .step_by(good.len() / 40 + 1)
        .map(|at| {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            (format!("byte {at}"), bad)
        })
        .collect();
    damaged.push((String::from("cut"), good[..good.len() - 1].to_vec()));
    damaged.push((String::from("empty"), Vec::new()));
    damaged.push((String::from("longer"), [good.clone(), vec![0]].concat()));
    damaged.push((String::from("other content"), zstd::encode_all(&bytes(10)[..], 3).unwrap()));
    damaged.push((String::from("recompressed"), zstd::encode_all(&plain[..], 9).unwrap()));
    for (what, bad) in damaged {
        std::fs::write(&path, &bad).unwrap();
        assert_eq!(archive.verify(&artifact).unwrap_err().code, Code::Corrupt, "{what}");
        if what != "recompressed" {
            let read = archive.open(&artifact.sha256).unwrap().read_to_end(&mut Vec::new());
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData, "{what}");
            let again = archive.publish("table", "candidate", None, |out| out.write_all(&plain));
            assert_eq!(again.unwrap_err().code, Code::Corrupt, "{what}");
        }
    }
    std::fs::write(&path, &good).unwrap();
    archive.verify(&artifact).unwrap();

    for wrong in [
        Artifact { bytes: artifact.bytes + 1, ..artifact.clone() },
        Artifact { bytes: artifact.bytes - 1, ..artifact.clone() },
        Artifact { stored_bytes: 1, ..artifact.clone() },
        Artifact { stored_sha256: "0".repeat(64), ..artifact.clone() },
    ] {
        assert_eq!(archive.verify(&wrong).unwrap_err().code, Code::Corrupt);
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(archive.verify(&artifact).unwrap_err().code, Code::NotFound);
}

#[test]
fn only_digests_are_names() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    for name in ["", "../../etc/passwd", "abc", &"A".repeat(64), &"g".repeat(64), &"0".repeat(65)] {
        assert_eq!(archive.path(name).unwrap_err().code, Code::InvalidRequest, "{name}");
        assert_eq!(archive.open(name).unwrap_err().code, Code::InvalidRequest, "{name}");
        assert!(!archive.holds(name));
    }
}
