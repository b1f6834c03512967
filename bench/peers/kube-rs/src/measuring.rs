//! What a process can say about itself.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Give a line of /proc/self/status in bytes: VmRSS is now, VmHWM the most it ever was.
pub fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("a /proc file system");
    let line = status.lines().find(|line| line.starts_with(&format!("{name}:"))).expect("the line");
    let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    kilobytes * 1024.0
}

pub fn cpu_seconds() -> f64 {
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn seconds(at: libc::timeval) -> f64 {
    at.tv_sec as f64 + at.tv_usec as f64 / 1e6
}

/// Give back to the system what is not in use, so that only what is held counts.
pub fn settle() {
    sleep(Duration::from_secs(2));
    unsafe { libc::malloc_trim(0) };
    sleep(Duration::from_millis(500));
}

/// Say how often a second something can be done, over about a second.
pub fn a_second(mut run: impl FnMut()) -> f64 {
    run();
    let (began, mut times) = (Instant::now(), 0u32);
    while began.elapsed() < Duration::from_secs(1) {
        run();
        times += 1;
    }
    f64::from(times) / began.elapsed().as_secs_f64()
}
