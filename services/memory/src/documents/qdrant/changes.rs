//! Storing and removing files.

use std::collections::HashSet;
use std::convert::Infallible;
use std::slice;
use std::time::{Duration, SystemTime};

use autoact_collections::{Entry, NewSegment, title_forms, unique_title};
use autoact_tools::text::fold;
use qdrant_client::qdrant::points_update_operation::{DeletePoints, Operation, PointStructList, SetPayload};
use qdrant_client::qdrant::{
    Condition, DeletePointsBuilder, Direction, Filter, GetPointsBuilder, OrderByBuilder, PointId, PointsUpdateOperation, Range,
    ScrollPointsBuilder, UpdateBatchPointsBuilder, UpsertPointsBuilder,
};
use uuid::Uuid;

use crate::documents::error::DocumentsError;
use crate::documents::qdrant::points::{FIELDS, LETTERS, StoredAt, StoredEntry, StoredSegment, WORDS, What, read};
use crate::documents::qdrant::{PAGE, QdrantDocuments};
use crate::documents::request::Whose;
use crate::server::Layout;

/// What every collection has; a dense vector comes with the first embedder.
const LAYOUT: Layout<'static> = Layout { sparse: &[(WORDS, true), (LETTERS, false)], dense: None, fields: &FIELDS };
/// Drafts this old are of a put that broke off.
const OLD_DRAFT: Duration = Duration::from_secs(60 * 60);

impl QdrantDocuments {
    /// Replaces what a collection has of a file; how many segments it has now.
    pub(super) async fn store(&self, whose: &Whose, entry: Entry, segments: Vec<NewSegment>) -> Result<u64, DocumentsError> {
        self.server.prepare(&self.collection(whose), &LAYOUT).await?;
        let version = Uuid::new_v4();
        // later than what is there, whatever the clocks of other replicas say
        let newest = self.newest(whose, &entry.path).await?;
        let stored_at = moment(SystemTime::now(), version).max(newest.map_or(0, |newest| newest + 1));
        self.forget_drafts(whose, slice::from_ref(&entry.path)).await?;

        let taken = self.taken(whose, &entry.path, &segments).await?;
        let draft = |(index, new): (u64, NewSegment)| {
            let number = format!("{}-{index}", &version.simple().to_string()[..8]);
            let Ok(title) = unique_title(&new.title, &entry.path, number, |form| Ok::<_, Infallible>(taken.contains(form)));
            StoredSegment::draft(&entry.path, version, stored_at, index, title, new)
        };
        let drafts: Vec<StoredSegment> = (0..).zip(segments).map(draft).collect();
        let count = drafts.len() as u64;
        self.draft(whose, drafts).await?;
        let path = entry.path.clone();
        let entry = Entry { segments: count, ..entry };
        self.publish(whose, StoredEntry { what: What::Entry, path, version, stored_at, entry }).await?;
        Ok(count)
    }

    /// Removes the drafts of puts that broke off.
    async fn forget_drafts(&self, whose: &Whose, paths: &[String]) -> Result<(), DocumentsError> {
        let old = moment(SystemTime::now() - OLD_DRAFT, Uuid::nil());
        self.remove(whose, older(paths, What::Draft, old)).await
    }

    /// Removes files; how many there were.
    pub(super) async fn delete(&self, whose: &Whose, paths: Vec<String>) -> Result<u64, DocumentsError> {
        let mut deleted = 0;
        for paths in paths.chunks(PAGE) {
            let ids: HashSet<PointId> = paths.iter().map(|path| StoredEntry::id(path)).collect();
            let get = GetPointsBuilder::new(self.collection(whose), ids.into_iter().collect::<Vec<_>>()).with_payload(false);
            deleted += self.told(whose, self.server.client.get_points(get).await).await?.result.len() as u64;
            // a file that is being stored is there afterwards, whole: its drafts are not touched
            self.remove(whose, Filter::must([Condition::matches("path", paths.to_vec()), What::is_seen()])).await?;
            self.forget_drafts(whose, paths).await?;
        }
        Ok(deleted)
    }

    /// Those of a file's possible titles that another file has, folded.
    async fn taken(&self, whose: &Whose, path: &str, segments: &[NewSegment]) -> Result<HashSet<String>, DocumentsError> {
        let forms: HashSet<String> =
            segments.iter().flat_map(|segment| title_forms(&segment.title, path)).map(|form| fold(&form)).collect();
        let (forms, mut taken) = (forms.into_iter().collect::<Vec<_>>(), HashSet::new());
        for forms in forms.chunks(PAGE) {
            let filter = Filter {
                must_not: vec![Condition::matches("path", path.to_owned())],
                ..Filter::must([What::Segment.is(), Condition::matches("name", forms.to_vec())])
            };
            let found = self.segments(whose, filter, PAGE as u32).await?;
            taken.extend(found.into_iter().map(|segment| segment.name));
        }
        Ok(taken)
    }

    /// Stores a file's segments where nobody sees them yet.
    async fn draft(&self, whose: &Whose, drafts: Vec<StoredSegment>) -> Result<(), DocumentsError> {
        let mut drafts = drafts.into_iter().peekable();
        while drafts.peek().is_some() {
            let batch: Vec<StoredSegment> = drafts.by_ref().take(PAGE).collect();
            let encoded = tokio::task::spawn_blocking(move || batch.iter().map(StoredSegment::point).collect::<Result<Vec<_>, _>>());
            let encoded = encoded.await.map_err(|error| DocumentsError::Broke(error.to_string()))?;
            let points = encoded.map_err(|error| self.server.error(error))?;
            let upsert = UpsertPointsBuilder::new(self.collection(whose), points).wait(true);
            self.told(whose, self.server.client.upsert_points(upsert).await).await?;
        }
        Ok(())
    }

    /// Makes a version of a file the one that is seen. Replicas may do that at the same time, and the
    /// server may end at any point: the newest version stays, and no other. The entry comes after the
    /// segments, so that an import stores a file again whose older segments may still be there.
    async fn publish(&self, whose: &Whose, stored: StoredEntry) -> Result<(), DocumentsError> {
        let (path, stored_at) = (stored.path.clone(), stored.stored_at);
        let version = Filter::must([Condition::matches("version", stored.version.to_string())]);
        let what = [("what".to_owned(), What::Segment.name().to_owned().into())].into();
        let seen = SetPayload { payload: what, points_selector: Some(version.into()), ..SetPayload::default() };
        let older =
            DeletePoints { points: Some(older(slice::from_ref(&path), What::Segment, stored_at).into()), ..DeletePoints::default() };
        self.update(whose, vec![Operation::SetPayload(seen), Operation::DeletePoints(older)]).await?;
        self.settle(whose, &path).await?;

        let entry = stored.point().map_err(|error| self.server.error(error))?;
        let unless_newer = Some(Filter::must([Condition::range("stored_at", before(stored_at))]));
        let entry = PointStructList { points: vec![entry], update_filter: unless_newer, ..PointStructList::default() };
        self.update(whose, vec![Operation::Upsert(entry)]).await?;
        self.settle(whose, &path).await
    }

    /// Removes a file's segments that are older than the newest version of it that is seen. Everybody
    /// does that after each step of publishing, so the last one to take a step sees all the others'.
    async fn settle(&self, whose: &Whose, path: &str) -> Result<(), DocumentsError> {
        match self.newest(whose, path).await? {
            Some(stored_at) => self.remove(whose, older(&[path.to_owned()], What::Segment, stored_at)).await,
            None => Ok(()),
        }
    }

    /// When the newest version of a file that is seen was stored.
    async fn newest(&self, whose: &Whose, path: &str) -> Result<Option<i64>, DocumentsError> {
        let order = OrderByBuilder::new("stored_at").direction(Direction::Desc.into());
        let scroll = ScrollPointsBuilder::new(self.collection(whose))
            .filter(Filter::must([Condition::matches("path", path.to_owned()), What::is_seen()]))
            .limit(1)
            .order_by(order)
            .with_payload(true);
        let page = self.told(whose, self.server.client.scroll(scroll).await).await?;
        Ok(page.result.into_iter().next().and_then(|point| read::<StoredAt>(point.payload)).map(|stored| stored.stored_at))
    }

    /// Changes points, one operation after the other.
    async fn update(&self, whose: &Whose, operations: Vec<Operation>) -> Result<(), DocumentsError> {
        let operation = |operation| PointsUpdateOperation { operation: Some(operation) };
        let operations: Vec<PointsUpdateOperation> = operations.into_iter().map(operation).collect();
        let batch = UpdateBatchPointsBuilder::new(self.collection(whose), operations).wait(true);
        self.told(whose, self.server.client.update_points_batch(batch).await).await.map(drop)
    }

    /// Removes what a filter admits.
    async fn remove(&self, whose: &Whose, filter: Filter) -> Result<(), DocumentsError> {
        self.told(whose, self.server.client.delete_points(DeletePointsBuilder::new(self.collection(whose)).points(filter).wait(true)).await)
            .await
            .map(drop)
    }
}

/// Files' points of a kind that were stored before a time.
fn older(paths: &[String], what: What, stored_at: i64) -> Filter {
    Filter::must([Condition::matches("path", paths.to_vec()), what.is(), Condition::range("stored_at", before(stored_at))])
}

fn before(stored_at: i64) -> Range {
    // exact: microseconds stay below 2^53 until the year 2255
    Range { lt: Some(stored_at as f64), ..Range::default() }
}

/// When a version is stored, in microseconds. Those below a millisecond are drawn, so that versions
/// of the same time do not tie.
fn moment(time: SystemTime, version: Uuid) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let drawn = (version.as_u128() % 1000) as i64;
    i64::try_from(since.as_millis()).unwrap_or_default() * 1000 + drawn
}
