//! The machine a run is made on, as far as it can be read without rights. What cannot be read is
//! null, never guessed; the host name is not recorded.

use std::path::Path;
use std::thread::available_parallelism;

use fs_err as fs;
use serde_json::{Map, Value, json};

/// Bytes of memory in kibibytes of `/proc/meminfo`.
const KIB: u64 = 1024;

/// Threads and memory that this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Logical CPUs this process may run on.
    pub threads: usize,
    /// Bytes of memory: the smaller of the machine's and of the cgroup's; absent when unknown.
    pub memory_bytes: Option<u64>,
}

/// What this process may use.
pub fn capacity() -> Capacity {
    let threads = available_parallelism().map_or(1, usize::from);
    let total = meminfo("MemTotal");
    let limit = cgroup("memory.max").and_then(|text| text.parse::<u64>().ok());
    let memory_bytes = match (total, limit) {
        (Some(total), Some(limit)) => Some(total.min(limit)),
        (total, limit) => total.or(limit),
    };
    Capacity { threads, memory_bytes }
}

/// The profile of this machine, now.
pub fn profile() -> Value {
    let capacity = capacity();
    json!({
        "operatingSystem": {
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "release": line("/proc/sys/kernel/osrelease"),
            "version": line("/proc/sys/kernel/version"),
            "distribution": distribution(),
            "container": Path::new("/.dockerenv").exists(),
        },
        "cpu": {
            "model": cpuinfo("model name"),
            "physicalCores": physical_cores(),
            "logicalCpus": cpu_count(),
            "affinityLogicalCpus": capacity.threads,
            "numaNodes": numa_nodes(),
            "governor": line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            "sha256Instructions": has_sha_instructions(),
        },
        "memory": {
            "totalBytes": meminfo("MemTotal"),
            "availableBytes": meminfo("MemAvailable"),
            "swapTotalBytes": meminfo("SwapTotal"),
            "pageSizeBytes": page_size(),
        },
        "limits": {
            "cgroupVersion": cgroup_version(),
            "memoryMaxBytes": cgroup("memory.max").and_then(|text| text.parse::<u64>().ok()),
            "cpuQuota": cgroup("cpu.max"),
        },
        "gpu": { "devices": [], "detectionNotes": "not looked for: nothing here uses one" },
        "toolchain": { "heldout": crate::config::build_id() },
        "notes": [],
    })
}

/// The processor, as far as speed depends on it.
pub fn processor() -> Value {
    json!({
        "model": cpuinfo("model name"),
        "physicalCores": physical_cores(),
        "logicalCpus": cpu_count(),
        "affinityLogicalCpus": capacity().threads,
        "caches": caches(),
        "hugePages": line("/sys/kernel/mm/transparent_hugepage/enabled"),
    })
}

/// Bytes of memory that could be taken now.
pub fn available_bytes() -> Option<u64> {
    meminfo("MemAvailable")
}

/// Bytes of memory that this process holds now.
pub fn resident_bytes() -> Option<u64> {
    kib_of(&read("/proc/self/status")?, "VmRSS")
}

/// Caches of the first processor, the smallest first; none when the system does not say.
fn caches() -> Vec<Value> {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    (0..8)
        .map_while(|index| {
            let level: u32 = line(&format!("{folder}/index{index}/level"))?.parse().ok()?;
            Some(json!({
                "level": level,
                "type": line(&format!("{folder}/index{index}/type")),
                "size": line(&format!("{folder}/index{index}/size")),
                "sharedBy": line(&format!("{folder}/index{index}/shared_cpu_list")),
            }))
        })
        .collect()
}

/// Bytes of the second- and the third-level cache of the first processor.
pub fn cache_bytes() -> Option<[u64; 2]> {
    let caches = caches();
    let bytes = |level: u32| {
        let cache = caches.iter().find(|cache| cache["level"] == level)?;
        let size = cache["size"].as_str()?.strip_suffix('K')?;
        size.parse::<u64>().ok().map(|kib| kib * KIB)
    };
    Some([bytes(2)?, bytes(3)?])
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn line(path: &str) -> Option<String> {
    read(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn meminfo(field: &str) -> Option<u64> {
    kib_of(&read("/proc/meminfo")?, field)
}

/// A field in kilobytes, in bytes.
fn kib_of(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * KIB)
}

fn page_size() -> Option<u64> {
    let text = read("/proc/self/smaps")?;
    let value = text.lines().find_map(|line| line.strip_prefix("KernelPageSize:"))?;
    value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * KIB)
}

fn cpuinfo(field: &str) -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then(|| value.trim().to_owned())
    })
}

fn cpu_count() -> Option<usize> {
    let text = read("/proc/cpuinfo")?;
    Some(text.lines().filter(|line| line.starts_with("processor")).count()).filter(|&n| n > 0)
}

fn physical_cores() -> Option<usize> {
    let text = read("/proc/cpuinfo")?;
    let mut cores: Vec<(String, String)> = Vec::new();
    let mut package = String::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.trim() {
            "physical id" => value.trim().clone_into(&mut package),
            "core id" => {
                let core = (package.clone(), value.trim().to_owned());
                if !cores.contains(&core) {
                    cores.push(core);
                }
            }
            _ => {}
        }
    }
    Some(cores.len()).filter(|&n| n > 0)
}

fn has_sha_instructions() -> Option<bool> {
    let flags = cpuinfo("flags").or_else(|| cpuinfo("Features"))?;
    Some(flags.split_whitespace().any(|flag| flag == "sha_ni" || flag == "sha2"))
}

fn numa_nodes() -> Option<usize> {
    let nodes = fs::read_dir("/sys/devices/system/node").ok()?;
    let count = nodes
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.strip_prefix("node").is_some_and(|id| id.bytes().all(|b| b.is_ascii_digit()))
        })
        .count();
    Some(count).filter(|&n| n > 0)
}

fn distribution() -> Option<Value> {
    let text = read("/etc/os-release")?;
    let mut found = Map::new();
    for field in ["ID", "VERSION_ID"] {
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix('='));
        if let Some(value) = value {
            found.insert(field.to_lowercase(), json!(value.trim_matches('"')));
        }
    }
    Some(Value::Object(found))
}

fn cgroup_version() -> Option<u32> {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        Some(2)
    } else {
        Path::new("/sys/fs/cgroup/memory").exists().then_some(1)
    }
}

fn cgroup(file: &str) -> Option<String> {
    line(&format!("/sys/fs/cgroup/{file}"))
}

#[cfg(test)]
mod tests {
    use super::{available_bytes, cache_bytes, capacity, processor, profile, resident_bytes};

    #[test]
    fn a_profile_has_every_part_and_no_host_name() {
        let profile = profile();
        for part in ["operatingSystem", "cpu", "memory", "limits", "gpu", "toolchain", "notes"] {
            assert!(profile.get(part).is_some(), "{part}");
        }
        assert!(profile["cpu"]["affinityLogicalCpus"].as_u64() >= Some(1));
        if let Some(name) = super::line("/proc/sys/kernel/hostname") {
            // A host named after a word that is in every profile would prove nothing.
            if name.len() > 6 {
                assert!(!profile.to_string().contains(&name), "the host name is in the profile");
            }
        }
    }

    #[test]
    fn a_process_holds_less_than_the_machine_has() {
        assert!(processor()["affinityLogicalCpus"].as_u64() >= Some(1));
        if let (Some(resident), Some(total)) = (resident_bytes(), super::meminfo("MemTotal")) {
            assert!(resident > 1 << 20 && resident < total, "{resident} of {total}");
        }
        assert!(cache_bytes().is_none_or(|[second, third]| second < third));
        assert!(available_bytes().is_none_or(|bytes| bytes > 0));
    }

    #[test]
    fn a_process_may_use_something() {
        assert!(capacity().threads >= 1);
        assert!(capacity().memory_bytes.is_none_or(|bytes| bytes > 1 << 20));
    }
}
