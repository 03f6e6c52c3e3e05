//! What the machine is, as far as it bears on the times.

use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::Path;

/// A machine. What the system does not tell is absent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Machine {
    /// Who makes the processor: `GenuineIntel`, say; on aarch64 the number of the implementer.
    pub vendor: Option<String>,
    /// The processor's model name.
    pub processor: Option<String>,
    /// How many cores this process may use.
    pub cores: Option<usize>,
    /// The caches of the first core.
    pub caches: Vec<Cache>,
    /// The processor's vector extensions that Rust's standard library can tell.
    pub vectors: Vec<&'static str>,
}

/// A cache of a core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cache {
    /// 1 for the nearest.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// How large it is.
    pub kibibytes: u64,
    /// The cores that share it, as the kernel lists them: `0-3`, say.
    pub cores: String,
}

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Self {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let vendor = field(&processors, "vendor_id");
        Self {
            vendor: vendor.or_else(|| field(&processors, "CPU implementer")),
            processor: field(&processors, "model name"),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            vectors: vectors(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = || "an unknown processor".to_owned();
        write!(f, "{}", self.processor.clone().unwrap_or_else(unknown))?;
        if let Some(vendor) = &self.vendor {
            write!(f, " ({vendor})")?;
        }
        match self.cores {
            Some(1) => write!(f, ", 1 core")?,
            Some(cores) => write!(f, ", {cores} cores")?,
            None => {}
        }
        let caches = (self.caches.iter()).filter(|cache| cache.kind != "Instruction");
        for (number, cache) in caches.enumerate() {
            let before = if number == 0 { ", caches: " } else { ", " };
            write!(f, "{before}L{} {cache}", cache.level)?;
        }
        match &self.vectors[..] {
            [] => Ok(()),
            vectors => write!(f, ", vectors: {}", vectors.join(" ")),
        }
    }
}

/// The size.
impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kibibytes {
            size if size > 0 && size.is_multiple_of(1024) => write!(f, "{} MiB", size / 1024),
            size => write!(f, "{size} KiB"),
        }
    }
}

/// Returns a field of the first processor.
fn field(processors: &str, name: &str) -> Option<String> {
    let fields = processors.lines().filter_map(|line| line.split_once(':'));
    let mut values = fields.filter(|(key, _)| key.trim() == name);
    values.next().map(|(_, value)| value.trim().to_owned())
}

/// Returns the caches that a directory of the kernel's describes, the nearest first.
fn caches(directory: &Path) -> Vec<Cache> {
    let of_index = |index: u32| {
        let directory = directory.join(format!("index{index}"));
        let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
        let read = |name: &str| read(name).map(|text| text.trim().to_owned());
        Some(Cache {
            level: read("level")?.parse().ok()?,
            kind: read("type")?,
            kibibytes: read("size")?.strip_suffix('K')?.parse().ok()?,
            cores: read("shared_cpu_list")?,
        })
    };
    (0..).map_while(of_index).collect()
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> Vec<&'static str> {
    let all = [
        ("sse2", is_x86_feature_detected!("sse2")),
        ("sse4.1", is_x86_feature_detected!("sse4.1")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512dq", is_x86_feature_detected!("avx512dq")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
    ];
    those_there(&all)
}

#[cfg(target_arch = "aarch64")]
fn vectors() -> Vec<&'static str> {
    use std::arch::is_aarch64_feature_detected as is_there;
    let all = [
        ("neon", is_there!("neon")),
        ("sve", is_there!("sve")),
        ("sve2", is_there!("sve2")),
    ];
    those_there(&all)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn vectors() -> Vec<&'static str> {
    those_there(&[])
}

fn those_there(all: &[(&'static str, bool)]) -> Vec<&'static str> {
    let there = all.iter().filter(|(_, is_there)| *is_there);
    there.map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_that_of_the_first_processor() {
        let text = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\
                    \nprocessor\t: 1\nvendor_id\t: other\n";
        assert_eq!(field(text, "vendor_id").unwrap(), "AuthenticAMD");
        assert_eq!(field(text, "model name").unwrap(), "AMD EPYC");
        assert_eq!(field(text, "CPU implementer"), None);
    }

    #[test]
    fn caches_are_read_as_the_kernel_writes_them() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("cache");
        assert!(caches(&directory).is_empty());
        for (index, level, kind, size) in [(0, 1, "Data", "48K"), (1, 2, "Unified", "1024K")] {
            let of_index = directory.join(format!("index{index}"));
            fs::create_dir_all(&of_index).unwrap();
            let write = |name, text: String| fs::write(of_index.join(name), text).unwrap();
            write("level", format!("{level}\n"));
            write("type", format!("{kind}\n"));
            write("size", format!("{size}\n"));
            write("shared_cpu_list", "0-1\n".to_owned());
        }
        let found = caches(&directory);
        let sizes: Vec<_> = found.iter().map(|c| (c.level, c.kibibytes)).collect();
        assert_eq!(sizes, [(1, 48), (2, 1024)]);
        assert_eq!((&*found[1].kind, &*found[1].cores), ("Unified", "0-1"));
    }

    #[test]
    fn a_machine_is_described_as_far_as_it_is_known() {
        let cache = |level, kind: &str, kibibytes| Cache {
            level,
            kind: kind.to_owned(),
            kibibytes,
            cores: "0".to_owned(),
        };
        let mut machine = Machine {
            vendor: Some("maker".to_owned()),
            processor: Some("model".to_owned()),
            cores: Some(2),
            caches: vec![
                cache(1, "Data", 48),
                cache(1, "Instruction", 32),
                cache(3, "Unified", 32 * 1024),
            ],
            vectors: vec!["sse2", "avx2"],
        };
        let all = "model (maker), 2 cores, caches: L1 48 KiB, L3 32 MiB, vectors: sse2 avx2";
        assert_eq!(machine.to_string(), all);
        (machine.vendor, machine.processor, machine.cores) = (None, None, None);
        (machine.caches, machine.vectors) = (Vec::new(), Vec::new());
        assert_eq!(machine.to_string(), "an unknown processor");
    }

    #[test]
    fn this_machine_has_vectors() {
        let machine = Machine::look();
        assert!(!machine.vectors.is_empty(), "{machine:?}");
        assert!(machine.cores.is_some_and(|cores| cores > 0));
    }
}
