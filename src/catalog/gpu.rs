//! EC2 machine types with an NVIDIA GPU.
//!
//! The shapes are from AWS's public pages on instance types
//! (<https://aws.amazon.com/ec2/instance-types/>, "Accelerated Computing"). GPU memory is the
//! usable memory that the driver reports. Prices are in [`prices`](super::prices).

use crate::check::{self, Refused, quoted};

/// A machine type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// AWS's name: `g4dn.xlarge`.
    pub name: &'static str,
    /// The model of its GPUs.
    pub gpu: Gpu,
    /// The number of its GPUs.
    pub gpus: u32,
    /// Virtual CPUs, all x86-64.
    pub vcpus: u32,
    /// Memory in GiB.
    pub memory_gib: u32,
}

/// A model of GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// NVIDIA's name. A fraction of a shared GPU is called `L4-3Q`, after its memory in GB.
    pub model: &'static str,
    /// Usable memory of one GPU, in MiB.
    pub memory_mib: u32,
    /// Compute capability, major and minor. It decides which CUDA code can run.
    pub compute_capability: (u8, u8),
    /// The kernel driver it needs.
    pub driver: Driver,
}

/// The kernel driver that a machine image must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// NVIDIA's open kernel modules, as in the usual GPU images. They support Turing and later
    /// GPUs.
    Open,
    /// NVIDIA's proprietary modules, which need a different image: `byFamily` of Settings.
    Proprietary,
}

const V100: Gpu = gpu("V100", 16384, (7, 0), Driver::Proprietary);
const V100_32: Gpu = gpu("V100", 32768, (7, 0), Driver::Proprietary);
const T4: Gpu = gpu("T4", 16384, (7, 5), Driver::Open);
const A100_40: Gpu = gpu("A100", 40960, (8, 0), Driver::Open);
const A100_80: Gpu = gpu("A100", 81920, (8, 0), Driver::Open);
const A10G: Gpu = gpu("A10G", 22888, (8, 6), Driver::Open);
const L4: Gpu = gpu("L4", 22888, (8, 9), Driver::Open);
const L4_EIGHTH: Gpu = gpu("L4-3Q", 2861, (8, 9), Driver::Open);
const L4_QUARTER: Gpu = gpu("L4-6Q", 5722, (8, 9), Driver::Open);
const L4_HALF: Gpu = gpu("L4-12Q", 11444, (8, 9), Driver::Open);
const L40S: Gpu = gpu("L40S", 45776, (8, 9), Driver::Open);
const H100: Gpu = gpu("H100", 81920, (9, 0), Driver::Open);
const H200: Gpu = gpu("H200", 144_384, (9, 0), Driver::Open);
const B200: Gpu = gpu("B200", 183_359, (10, 0), Driver::Open);
const B300: Gpu = gpu("B300", 275_040, (10, 3), Driver::Open);
const RTX_PRO_4500: Gpu = gpu("RTX PRO 4500", 32623, (12, 0), Driver::Open);
const RTX_PRO_6000: Gpu = gpu("RTX PRO 6000", 97887, (12, 0), Driver::Open);

/// All machine types that Paved Road knows, by family and size.
pub static MACHINES: &[Machine] = &[
    machine_type("g4dn.xlarge", 1, T4, 4, 16),
    machine_type("g4dn.2xlarge", 1, T4, 8, 32),
    machine_type("g4dn.4xlarge", 1, T4, 16, 64),
    machine_type("g4dn.8xlarge", 1, T4, 32, 128),
    machine_type("g4dn.12xlarge", 4, T4, 48, 192),
    machine_type("g4dn.16xlarge", 1, T4, 64, 256),
    machine_type("g4dn.metal", 8, T4, 96, 384),
    machine_type("g5.xlarge", 1, A10G, 4, 16),
    machine_type("g5.2xlarge", 1, A10G, 8, 32),
    machine_type("g5.4xlarge", 1, A10G, 16, 64),
    machine_type("g5.8xlarge", 1, A10G, 32, 128),
    machine_type("g5.12xlarge", 4, A10G, 48, 192),
    machine_type("g5.16xlarge", 1, A10G, 64, 256),
    machine_type("g5.24xlarge", 4, A10G, 96, 384),
    machine_type("g5.48xlarge", 8, A10G, 192, 768),
    machine_type("g6.xlarge", 1, L4, 4, 16),
    machine_type("g6.2xlarge", 1, L4, 8, 32),
    machine_type("g6.4xlarge", 1, L4, 16, 64),
    machine_type("g6.8xlarge", 1, L4, 32, 128),
    machine_type("g6.12xlarge", 4, L4, 48, 192),
    machine_type("g6.16xlarge", 1, L4, 64, 256),
    machine_type("g6.24xlarge", 4, L4, 96, 384),
    machine_type("g6.48xlarge", 8, L4, 192, 768),
    machine_type("g6e.xlarge", 1, L40S, 4, 32),
    machine_type("g6e.2xlarge", 1, L40S, 8, 64),
    machine_type("g6e.4xlarge", 1, L40S, 16, 128),
    machine_type("g6e.8xlarge", 1, L40S, 32, 256),
    machine_type("g6e.12xlarge", 4, L40S, 48, 384),
    machine_type("g6e.16xlarge", 1, L40S, 64, 512),
    machine_type("g6e.24xlarge", 4, L40S, 96, 768),
    machine_type("g6e.48xlarge", 8, L40S, 192, 1536),
    machine_type("g6f.large", 1, L4_EIGHTH, 2, 8),
    machine_type("g6f.xlarge", 1, L4_EIGHTH, 4, 16),
    machine_type("g6f.2xlarge", 1, L4_QUARTER, 8, 32),
    machine_type("g6f.4xlarge", 1, L4_HALF, 16, 64),
    machine_type("gr6.4xlarge", 1, L4, 16, 128),
    machine_type("gr6.8xlarge", 1, L4, 32, 256),
    machine_type("gr6f.4xlarge", 1, L4_HALF, 16, 128),
    machine_type("g7.2xlarge", 1, RTX_PRO_4500, 8, 32),
    machine_type("g7.4xlarge", 1, RTX_PRO_4500, 16, 64),
    machine_type("g7.8xlarge", 1, RTX_PRO_4500, 32, 128),
    machine_type("g7.12xlarge", 2, RTX_PRO_4500, 48, 192),
    machine_type("g7.24xlarge", 4, RTX_PRO_4500, 96, 384),
    machine_type("g7.48xlarge", 8, RTX_PRO_4500, 192, 768),
    machine_type("g7e.2xlarge", 1, RTX_PRO_6000, 8, 64),
    machine_type("g7e.4xlarge", 1, RTX_PRO_6000, 16, 128),
    machine_type("g7e.8xlarge", 1, RTX_PRO_6000, 32, 256),
    machine_type("g7e.12xlarge", 2, RTX_PRO_6000, 48, 512),
    machine_type("g7e.24xlarge", 4, RTX_PRO_6000, 96, 1024),
    machine_type("g7e.48xlarge", 8, RTX_PRO_6000, 192, 2048),
    machine_type("p3.2xlarge", 1, V100, 8, 61),
    machine_type("p3.8xlarge", 4, V100, 32, 244),
    machine_type("p3.16xlarge", 8, V100, 64, 488),
    machine_type("p3dn.24xlarge", 8, V100_32, 96, 768),
    machine_type("p4d.24xlarge", 8, A100_40, 96, 1152),
    machine_type("p4de.24xlarge", 8, A100_80, 96, 1152),
    machine_type("p5.4xlarge", 1, H100, 16, 256),
    machine_type("p5.48xlarge", 8, H100, 192, 2048),
    machine_type("p5e.48xlarge", 8, H200, 192, 2048),
    machine_type("p5en.48xlarge", 8, H200, 192, 2048),
    machine_type("p6-b200.48xlarge", 8, B200, 192, 2048),
    machine_type("p6-b300.48xlarge", 8, B300, 192, 4096),
];

/// Families with NVIDIA GPUs and arm64 CPUs.
const ARM64: [&str; 3] = ["g5g", "p6e-gb200", "p6e-gb300"];

/// Families with sizes that are offered by default: the sizes with one GPU.
const OFFERED: [&str; 4] = ["g4dn", "g5", "g6", "g6e"];

/// The machine type with a name. The error has the families and the most similar names.
pub fn machine(name: &str) -> Result<&'static Machine, Refused> {
    if let Some(machine) = MACHINES.iter().find(|machine| machine.name == name) {
        return Ok(machine);
    }
    let near = crossplane::similar(name, MACHINES.iter().map(|machine| machine.name), 3);
    let hint = match near.as_slice() {
        [] => String::new(),
        near => format!(" (nearest: {})", near.join(", ")),
    };
    let allowed = format!("a machine type of {}{hint}", families().join(", "));
    Err(Refused { found: found(name), allowed })
}

/// The machine type with a name, if it is in the offer. The error has the offer and the most
/// similar name.
pub fn offered(name: &str, offer: &[&'static Machine]) -> Result<&'static Machine, Refused> {
    if let Some(machine) = offer.iter().find(|machine| machine.name == name) {
        return Ok(machine);
    }
    let names: Vec<&str> = offer.iter().map(|machine| machine.name).collect();
    Err(Refused { found: found(name), allowed: check::offer(name, &names) })
}

/// An unknown name, with the reason if its machines have another architecture.
fn found(name: &str) -> String {
    let is_arm = name.split_once('.').is_some_and(|(family, _)| ARM64.contains(&family));
    let reason = if is_arm { ", which has arm64 CPUs" } else { "" };
    format!("{}{reason}", quoted(name))
}

/// The families of all machine types.
pub fn families() -> Vec<&'static str> {
    MACHINES
        .chunk_by(|a, b| a.family() == b.family())
        .map(|machines| machines[0].family())
        .collect()
}

impl Machine {
    /// The family, which selects the image: `g4dn`.
    pub fn family(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(family, _)| family)
    }

    /// Whether it is offered if Settings name no types: one GPU of an affordable family.
    pub fn is_usual(&self) -> bool {
        self.gpus == 1 && OFFERED.contains(&self.family())
    }

    /// A description in one line: `1 × NVIDIA T4 (16 GiB), 4 vCPUs, 16 GiB`.
    pub fn line(&self) -> String {
        let Self { gpus, vcpus, memory_gib, gpu, .. } = self;
        let each = if *gpus == 1 { "" } else { " each" };
        let gpu_gib = (gpu.memory_mib + 512) / 1024;
        format!(
            "{gpus} × NVIDIA {} ({gpu_gib} GiB{each}), {vcpus} vCPUs, {memory_gib} GiB",
            gpu.model
        )
    }
}

const fn gpu(
    model: &'static str,
    memory_mib: u32,
    compute_capability: (u8, u8),
    driver: Driver,
) -> Gpu {
    Gpu { model, memory_mib, compute_capability, driver }
}

const fn machine_type(
    name: &'static str,
    gpus: u32,
    gpu: Gpu,
    vcpus: u32,
    memory_gib: u32,
) -> Machine {
    Machine { name, gpu, gpus, vcpus, memory_gib }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::catalog::prices::{self, Usd};

    fn usd(machine: &Machine) -> Option<Usd> {
        prices::find(machine.name, "us-east-1").map(|price| price.usd)
    }

    #[test]
    fn line_describes_gpus_vcpus_and_memory() {
        assert_eq!(
            machine("g4dn.xlarge").unwrap().line(),
            "1 × NVIDIA T4 (16 GiB), 4 vCPUs, 16 GiB"
        );
        let line = machine("g5.12xlarge").unwrap().line();
        assert_eq!(line, "4 × NVIDIA A10G (22 GiB each), 48 vCPUs, 192 GiB");
    }

    #[test]
    fn unknown_name_is_rejected_with_families_and_similar_names() {
        let refused = machine("g4dn.xlrage").unwrap_err();
        assert_eq!(refused.found, "\"g4dn.xlrage\"");
        assert!(refused.allowed.contains(" (nearest: g4dn.xlarge, "), "{}", refused.allowed);
        for family in families() {
            assert!(refused.allowed.contains(family), "{}", refused.allowed);
        }
        assert!(machine("冷").unwrap_err().allowed.ends_with("p6-b300"));
    }

    #[test]
    fn only_volta_needs_the_proprietary_driver() {
        for machine in MACHINES {
            let old = machine.gpu.compute_capability < (7, 5);
            assert_eq!(machine.gpu.driver == Driver::Proprietary, old, "{}", machine.name);
            assert_eq!(["p3", "p3dn"].contains(&machine.family()), old, "{}", machine.name);
        }
    }

    #[test]
    fn names_are_unique_and_grouped_by_family() {
        let mut names: Vec<_> = MACHINES.iter().map(|machine| machine.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MACHINES.len());
        let mut families: Vec<_> = MACHINES
            .chunk_by(|a, b| a.family() == b.family())
            .map(|group| group[0].family())
            .collect();
        let groups = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), groups);
    }

    #[test]
    fn larger_machine_never_costs_less_within_its_family() {
        for (a, b) in MACHINES.iter().flat_map(|a| MACHINES.iter().map(move |b| (a, b))) {
            let more = a.gpus <= b.gpus && a.vcpus <= b.vcpus && a.memory_gib <= b.memory_gib;
            let prices = usd(a).zip(usd(b)).filter(|_| a.family() == b.family() && more);
            assert!(prices.is_none_or(|(a, b)| a <= b), "{} and {}", a.name, b.name);
        }
    }

    #[test]
    fn arm64_machine_type_is_refused_with_its_reason() {
        for name in ["g5g.xlarge", "p6e-gb200.36xlarge"] {
            let refused = machine(name).unwrap_err();
            assert_eq!(refused.found, format!("{name:?}, which has arm64 CPUs"));
            let offer: Vec<_> = MACHINES.iter().filter(|machine| machine.is_usual()).collect();
            let refused = super::offered(name, &offer).unwrap_err();
            assert_eq!(refused.found, format!("{name:?}, which has arm64 CPUs"));
            assert!(refused.allowed.starts_with("g4dn, g5, g6, g6e (xlarge, "), "{refused}");
        }
    }

    #[test]
    fn default_offer_is_single_gpus_of_four_families() {
        let offered: Vec<_> = MACHINES.iter().filter(|machine| machine.is_usual()).collect();
        assert!(offered.iter().all(|machine| machine.gpus == 1));
        let mut families: Vec<_> = offered.iter().map(|machine| machine.family()).collect();
        families.dedup();
        assert_eq!(families, OFFERED);
        let most = "8".parse().unwrap();
        assert!(offered.iter().all(|machine| usd(machine).is_some_and(|price| price < most)));
        let refused = super::offered("p5.48xlarge", &offered).unwrap_err();
        assert!(refused.allowed.starts_with("g4dn, g5, g6, g6e (xlarge, "), "{refused}");
    }
}
