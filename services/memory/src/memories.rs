//! What the service does with its store, whichever that is: conversations, ages, times to live, and
//! forgetting that lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use autoact_trajectory::Tenant;
use prost_types::Timestamp;

use crate::asked::{Filter, Place, Query, Recalled};
use crate::forgetting::{Forgetting, Scope, means, records_of};
use crate::remembered::{Forgotten, Key, Kind, Memory};
use crate::store::{MemoryStore, StoreError};

/// How long a record keeps something forgotten: far longer than an outbox that reaches memory takes.
const FORGOTTEN_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Memories of a conversation whose places count; older ones are found as if they were as old as
/// these.
const LONGEST_CONVERSATION: usize = 10_000;

/// How long memories are kept after their tasks have ended; `None`: until they are forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeToLive {
    /// Of finished tasks.
    pub task: Option<Duration>,
    /// Of turns of conversations.
    pub turn: Option<Duration>,
}

impl TimeToLive {
    fn of(self, kind: Kind) -> Option<Duration> {
        match kind {
            Kind::Task => self.task,
            Kind::Turn => self.turn,
            Kind::Forgotten => Some(FORGOTTEN_FOR),
        }
    }

    /// The end of a task whose memory expires now.
    fn limit(self, kind: Kind) -> Option<Timestamp> {
        Some(SystemTime::now().checked_sub(self.of(kind)?)?.into())
    }

    fn has_expired(self, memory: &Memory) -> bool {
        let ended = memory.finished_at().map(|time| (time.seconds, time.nanos));
        let limit = self.limit(memory.kind()).map(|time| (time.seconds, time.nanos));
        ended.zip(limit).is_some_and(|(ended, limit)| ended <= limit)
    }
}

/// What to recall beside what a query finds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct InConversation {
    /// Also this many memories before and after each that is found.
    pub neighbours: usize,
    /// Also the last one.
    pub latest: bool,
    /// After so many memories a score counts half; 0: ages count nothing.
    pub half_life: f64,
}

/// The memories in a store.
#[derive(Clone)]
pub struct Memories {
    store: Arc<dyn MemoryStore>,
    ttl: TimeToLive,
}

impl Memories {
    /// Over a store.
    pub fn new(store: Arc<dyn MemoryStore>, ttl: TimeToLive) -> Memories {
        Memories { store, ttl }
    }

    /// The store's name.
    pub(crate) fn store(&self) -> &'static str {
        self.store.name()
    }

    /// Stores or replaces a memory; false if it was forgotten before it came, or has expired.
    pub async fn remember(&self, memory: Memory) -> Result<bool, StoreError> {
        if self.ttl.has_expired(&memory) || self.is_forgotten(&memory).await? {
            return Ok(false);
        }
        self.store.remember(memory.clone()).await?;
        // Forgetting records first and erases then. So whoever forgot it meanwhile either found it
        // stored, or is found here.
        if self.is_forgotten(&memory).await? {
            self.store.erase(vec![memory.key()]).await?;
            return Ok(false);
        }
        Ok(true)
    }

    async fn is_forgotten(&self, memory: &Memory) -> Result<bool, StoreError> {
        let records = self.store.get(records_of(memory)).await?;
        Ok(records.iter().any(|record| matches!(record, Memory::Forgotten(record) if means(record, memory))))
    }

    /// The memories most similar to a query. In a conversation: first its last one, if that is
    /// asked for, then what was found, the best first, then the neighbours of these.
    pub async fn recall(&self, query: Query, around: InConversation) -> Result<Vec<Recalled>, StoreError> {
        if around == InConversation::default() {
            return self.similar(query).await;
        }
        let timeline =
            Filter { conversation: query.conversation.clone(), limit: LONGEST_CONVERSATION, ..Filter::of(&query.tenant, query.kind) };
        let mut timeline = self.store.scan(timeline).await?;
        timeline.retain(|memory| !self.ttl.has_expired(memory));
        let limit = query.limit;
        let pool = if around.half_life > 0.0 { timeline.len().max(limit) } else { limit };
        let found = self.similar(Query { limit: pool, ..query }).await?;
        Ok(arrange(&timeline, found, limit, around))
    }

    /// What the store finds, without what has expired.
    async fn similar(&self, query: Query) -> Result<Vec<Recalled>, StoreError> {
        let mut asked = query.limit;
        loop {
            let mut found = self.store.recall(Query { limit: asked, ..query.clone() }).await?;
            let all = found.len() < asked;
            found.retain(|recalled| !self.ttl.has_expired(&recalled.memory));
            if all || found.len() >= query.limit {
                found.truncate(query.limit);
                return Ok(found);
            }
            asked = asked.saturating_mul(4);
        }
    }

    /// Up to `size` memories of a tenant, the newest first, beyond a place.
    pub async fn list(
        &self,
        tenant: &Tenant,
        kinds: &[Kind],
        conversation: &str,
        size: usize,
        after: Option<Place>,
    ) -> Result<Vec<Memory>, StoreError> {
        let mut listed = Vec::new();
        for kind in kinds {
            let mut filter =
                Filter { conversation: conversation.to_owned(), limit: size, after: after.clone(), ..Filter::of(tenant, *kind) };
            // newest first: once one has expired, so have all after it, but for those without a time
            loop {
                let found = self.store.scan(filter.clone()).await?;
                let (count, last) = (found.len(), found.last().map(Memory::place));
                listed.extend(found.into_iter().filter(|memory| !self.ttl.has_expired(memory)));
                let enough = listed.iter().filter(|memory| memory.kind() == *kind).count() >= size;
                if enough || count < size {
                    break;
                }
                filter.after = last;
            }
        }
        listed.sort_by_cached_key(Memory::place);
        listed.truncate(size);
        Ok(listed)
    }

    /// One memory.
    pub async fn get(&self, key: Key) -> Result<Option<Memory>, StoreError> {
        Ok(self.store.get(vec![key]).await?.pop().filter(|memory| !self.ttl.has_expired(memory)))
    }

    /// Removes memories, and keeps them from coming back; how many there were.
    pub async fn forget(&self, forgetting: &Forgetting) -> Result<usize, StoreError> {
        let now = Timestamp::from(SystemTime::now());
        for kind in &forgetting.kinds {
            let mut record = forgetting.record(*kind, now);
            let key = Key { tenant: record.tenant.clone(), kind: Kind::Forgotten, id: record.id.clone() };
            if let Some(Memory::Forgotten(Forgotten { until, .. })) = self.store.get(vec![key]).await?.pop()
                && (until.seconds, until.nanos) > (record.until.seconds, record.until.nanos)
            {
                record.until = until;
            }
            self.store.remember(Memory::Forgotten(record)).await?;
        }
        let mut keys = Vec::new();
        for kind in &forgetting.kinds {
            match (forgetting.filter(*kind), &forgetting.scope) {
                (Some(filter), _) => keys.extend(self.store.scan(filter).await?.iter().map(Memory::key)),
                (None, Scope::Id(id)) => keys.push(Key { tenant: forgetting.tenant.clone(), kind: *kind, id: id.clone() }),
                (None, _) => {}
            }
        }
        self.store.erase(keys).await
    }

    /// Removes what has expired, everybody's; how much there was.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let mut keys = Vec::new();
        for kind in [Kind::Task, Kind::Turn, Kind::Forgotten] {
            let Some(limit) = self.ttl.limit(kind) else { continue };
            let all = Filter { tenant: None, before: Some(limit), ..Filter::of(&Tenant::default(), kind) };
            let found = self.store.scan(all).await?;
            keys.extend(found.iter().filter(|memory| self.ttl.has_expired(memory)).map(Memory::key));
        }
        self.store.erase(keys).await
    }
}

/// What was found in a conversation, arranged: see [`Memories::recall`]. `timeline` has the newest
/// first, so a memory's place is its age.
fn arrange(timeline: &[Memory], mut found: Vec<Recalled>, limit: usize, around: InConversation) -> Vec<Recalled> {
    let ages: BTreeMap<&str, usize> = timeline.iter().enumerate().map(|(age, memory)| (memory.id(), age)).collect();
    let age = |memory: &Memory| ages.get(memory.id()).copied().unwrap_or(timeline.len());
    if around.half_life > 0.0 {
        for recalled in &mut found {
            recalled.score = aged(recalled.score, age(&recalled.memory), around.half_life);
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
    }
    found.truncate(limit);
    let mut ranked: Vec<Recalled> = Vec::new();
    let for_its_place = |memory: &Memory| Recalled { score: 0.0, memory: memory.clone() };
    if around.latest
        && let Some(last) = timeline.first()
    {
        let hit = found.iter().find(|recalled| recalled.memory.id() == last.id());
        ranked.push(hit.cloned().unwrap_or_else(|| for_its_place(last)));
    }
    ranked.extend(found.iter().cloned());
    for recalled in &found {
        let Some(at) = ages.get(recalled.memory.id()) else { continue };
        for distance in 1..=around.neighbours {
            let before_and_after = [at.checked_add(distance), at.checked_sub(distance)];
            ranked.extend(before_and_after.into_iter().flatten().filter_map(|at| timeline.get(at)).map(for_its_place));
        }
    }
    let mut known = BTreeSet::new();
    ranked.retain(|recalled| known.insert(recalled.memory.id().to_owned()));
    ranked
}

/// A score, so many memories later.
fn aged(score: f32, age: usize, half_life: f64) -> f32 {
    (f64::from(score) * 0.5_f64.powf(age as f64 / half_life)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembered::Turn;

    fn turn(number: usize) -> Memory {
        Memory::Turn(Turn {
            tenant: Tenant::default(),
            conversation: "c".into(),
            task_id: number.to_string(),
            question: "?".into(),
            answer: "!".into(),
            approved: true,
            finished_at: Some(Timestamp { seconds: number as i64, nanos: 0 }),
        })
    }

    /// Turns 9 to 0: the newest first.
    fn timeline() -> Vec<Memory> {
        (0..10).rev().map(turn).collect()
    }

    fn arranged(found: &[(usize, f32)], limit: usize, around: InConversation) -> Vec<(String, f32)> {
        let found = found.iter().map(|(number, score)| Recalled { score: *score, memory: turn(*number) }).collect();
        let arranged = arrange(&timeline(), found, limit, around);
        arranged.into_iter().map(|recalled| (recalled.memory.id().to_owned(), recalled.score)).collect()
    }

    #[test]
    fn a_score_halves_with_each_half_life() {
        assert_eq!([0, 5, 10].map(|age| aged(8.0, age, 5.0)), [8.0, 4.0, 2.0]);
        let around = InConversation { half_life: 5.0, ..InConversation::default() };
        // ages 7, 2 and 0: 7 * 0.5^1.4 = 2.65, 4 * 0.5^0.4 = 3.03, 3
        let found = arranged(&[(2, 7.0), (7, 4.0), (9, 3.0)], 5, around);
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["7", "9", "2"]);
        assert!((found[2].1 - 7.0 * 0.5_f32.powf(1.4)).abs() < 1e-6 && found[1].1 == 3.0, "{found:?}");
        // a newest one that fits hardly does not push out an old one that fits well
        assert_eq!(arranged(&[(0, 9.0), (9, 2.0)], 1, around)[0].0, "0");
        // of what fits equally well the newest wins
        assert_eq!(arranged(&[(3, 5.0), (8, 5.0), (6, 5.0)], 1, around)[0].0, "8");
    }

    #[test]
    fn the_last_turn_comes_first_and_neighbours_come_last() {
        let around = InConversation { neighbours: 1, latest: true, half_life: 0.0 };
        let expected = [("9", 0.0), ("4", 3.0), ("0", 2.0), ("3", 0.0), ("5", 0.0), ("1", 0.0)];
        assert_eq!(arranged(&[(4, 3.0), (0, 2.0)], 4, around), expected.map(|(id, score)| (id.to_owned(), score)));
        // everything once, with its score where it has one
        let expected = [("9", 3.0), ("8", 2.0), ("7", 0.0)];
        assert_eq!(arranged(&[(9, 3.0), (8, 2.0)], 4, around), expected.map(|(id, score)| (id.to_owned(), score)));
        assert_eq!(arranged(&[], 4, around), [("9".to_owned(), 0.0)]);
    }
}
