//! An artifact of a task: what one of its observations refers to.

use autoact_access::Principal;
use autoact_trajectory::{Artifact, TaskId};

use crate::tasks::{Application, TaskError};

impl Application {
    /// The artifact `name` of a planning loop, from 1, and its bytes; of the last loop that has one
    /// of this name for 0. Only what the task's own events refer to can be had.
    pub(crate) async fn artifact(&self, who: &Principal, id: &TaskId, name: &str, step: u32) -> Result<(Artifact, Vec<u8>), TaskError> {
        let task = self.get(who, id).await?;
        let of_step = |at: usize| step == 0 || u32::try_from(at).is_ok_and(|at| at + 1 == step);
        let steps = task.trajectory().steps().enumerate().filter(|(at, _)| of_step(*at)).map(|(_, step)| step);
        let found = steps.flat_map(|step| &step.artifacts).filter(|artifact| artifact.name == name).last();
        let shown = || name.chars().take(64).collect();
        let artifact = found.ok_or_else(|| TaskError::NoArtifact { task: id.clone(), name: shown() })?;
        // its bytes are in memory until they are sent
        let _place = self.watcher(who)?;
        Ok((artifact.clone(), self.bus.artifact(task.key(), artifact).await?))
    }
}
