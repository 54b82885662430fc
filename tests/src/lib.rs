//! Whole-system tests live in `tests/`: `system` runs the group as real processes, `manifests`
//! checks what is in `k8s/`.
