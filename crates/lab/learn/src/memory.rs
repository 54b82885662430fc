//! The memory of this process, and what is free.

/// Peak memory of this process in bytes; 0 if the system does not report it.
pub(crate) fn peak() -> u64 {
    line(&read("/proc/self/status"), "VmHWM:").unwrap_or_default()
}

/// Bytes that are free on the machine, or in this process's cgroup if that has less; 0 if the system
/// does not report it.
pub(crate) fn free() -> u64 {
    let group = |file: &str| read(&format!("/sys/fs/cgroup/{file}"));
    free_in(&read("/proc/meminfo"), &group("memory.max"), &group("memory.current"))
}

/// From the texts of these files; a cgroup without a limit has the word `max` or no file.
fn free_in(machine: &str, limit: &str, used: &str) -> u64 {
    let machine = line(machine, "MemAvailable:").unwrap_or_default();
    let number = |text: &str| text.trim().parse::<u64>().ok();
    number(limit).map_or(machine, |limit| machine.min(limit.saturating_sub(number(used).unwrap_or_default())))
}

/// The bytes in a line such as `VmHWM:     1024 kB`.
fn line(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_machine_and_group_is_free() {
        let machine = "MemTotal:       24000 kB\nMemAvailable:   20000 kB\n";
        let kib = |text: &str, used: &str| free_in(machine, text, used) / 1024;
        assert_eq!([kib("", ""), kib("max\n", "1024\n"), kib("99999999999\n", "1024\n")], [20_000; 3]);
        assert_eq!([kib("4096000\n", "1024000\n"), kib("1024\n", "2048\n")], [3000, 0]);
        assert_eq!(free_in("", "", ""), 0);
    }
}
