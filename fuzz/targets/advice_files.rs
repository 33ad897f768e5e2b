//! Documents that `advise` reads: workloads and calibrations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold::utility::{Calibration, Workload};

fuzz_target!(|data: &[u8]| {
    if let Ok(workload) = Workload::from_json(data) {
        assert!(workload.elapsed_s.is_none_or(|s| s >= 0.0 && s.is_finite()));
        let again = Workload::from_json(workload.to_json().to_string().as_bytes());
        assert_eq!(again.ok().map(|again| again.objects), Some(workload.objects));
    }
    if let Ok(calibration) = Calibration::from_json(data) {
        let all = calibration.tables.values().chain(calibration.indexes.values()).flat_map(|ways| ways.values());
        for costs in all {
            assert!(costs.operations.fields().iter().all(|(_, ns)| (0.0..=1e9).contains(ns)));
        }
        assert!(Calibration::from_json(calibration.to_json().to_string().as_bytes()).is_ok());
    }
});
