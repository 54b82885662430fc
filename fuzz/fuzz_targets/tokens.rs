#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| autoact_fuzz_entries::tokens(data));
