//! The same questions to a memory service over gRPC: recall, and the time of a call.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use autoact_wire::memory_v1 as v1;
use autoact_wire::memory_v1::documents_client::DocumentsClient;
use autoact_wire::memory_v1::put_file_request::Part;
use tonic::transport::Channel;

use crate::recall::{DEPTHS, report, share};
use crate::sets::Set;
use crate::{STRATEGIES, segments};

/// Where the pages are kept meanwhile.
const COLLECTION: &str = "bench-retrieval";
/// Segments of one message.
const PER_MESSAGE: usize = 256;
/// Segments of one file.
const PER_FILE: usize = 1000;
/// How often the vectors are counted.
const LOOK_EVERY: Duration = Duration::from_millis(500);

type Client = DocumentsClient<Channel>;

/// A table of one set, and the median and 95th percentile of each strategy's calls.
#[allow(clippy::print_stderr)] // progress
pub(crate) async fn table(set: &Set, memory: &str) -> anyhow::Result<String> {
    let channel = autoact_wire::client::connect_lazy(memory)?;
    let mut client: Client = autoact_wire::limited!(DocumentsClient::new(channel));
    let begun = Instant::now();
    store(&mut client, set).await.context("the pages could not be stored")?;
    eprintln!("{} segments stored in {:.1?}", set.pages.len(), begun.elapsed());
    let with_vectors = vectors(&mut client).await?;
    eprintln!("{with_vectors} have vectors after {:.1?}", begun.elapsed());

    let mut recalls = vec![[const { Vec::new() }; DEPTHS.len()]; STRATEGIES.len()];
    let mut times = vec![Vec::new(); STRATEGIES.len()];
    let named =
        [v1::SearchStrategy::Words, v1::SearchStrategy::Vectors, v1::SearchStrategy::Concatenation, v1::SearchStrategy::ReciprocalRanks];
    for question in &set.questions {
        for ((row, times), strategy) in recalls.iter_mut().zip(&mut times).zip(named) {
            if with_vectors == 0 && strategy != v1::SearchStrategy::Words {
                continue;
            }
            for (cell, depth) in row.iter_mut().zip(DEPTHS) {
                let request = v1::SearchSegmentsRequest {
                    collections: vec![COLLECTION.to_owned()],
                    query: question.text.clone(),
                    limit: depth as u32,
                    strategy: strategy.into(),
                    ..Default::default()
                };
                let asked = Instant::now();
                let found = client.search_segments(request).await?.into_inner().segments;
                times.push(asked.elapsed());
                let titles = found.iter().filter_map(|found| found.segment.as_ref()).map(|segment| segment.title.as_str());
                cell.push(share(question, titles));
            }
        }
    }
    client.delete_collection(v1::DeleteCollectionRequest { collection: COLLECTION.to_owned(), ..Default::default() }).await?;
    let mut text = report(set, &recalls);
    text.push_str("\n| strategy | time of a call, median (95%) |\n| --- | --- |\n");
    for ((name, _), times) in STRATEGIES.iter().zip(&mut times) {
        times.sort_unstable();
        if let (Some(median), Some(tail)) = (times.get(times.len() / 2), times.get(times.len() * 95 / 100)) {
            text.push_str(&format!("| {name} | {:.1} ms ({:.1}) |\n", median.as_secs_f64() * 1e3, tail.as_secs_f64() * 1e3));
        }
    }
    Ok(text)
}

/// Stores the pages in an empty collection.
async fn store(client: &mut Client, set: &Set) -> anyhow::Result<()> {
    client.delete_collection(v1::DeleteCollectionRequest { collection: COLLECTION.to_owned(), ..Default::default() }).await?;
    for (number, segments) in segments(set).chunks(PER_FILE).enumerate() {
        let path = format!("pages-{number}");
        let file = v1::File { path: path.clone(), title: path, kind: "text".to_owned(), ..Default::default() };
        let file = v1::FileToPut { collection: COLLECTION.to_owned(), file: Some(file), ..Default::default() };
        let segment = |new: &autoact_collections::NewSegment| v1::NewSegment {
            title: new.title.clone(),
            text: new.text.clone(),
            ..Default::default()
        };
        let batches =
            segments.chunks(PER_MESSAGE).map(|batch| Part::Segments(v1::SegmentBatch { segments: batch.iter().map(segment).collect() }));
        let parts: Vec<_> = [Part::File(file)].into_iter().chain(batches).map(|part| v1::PutFileRequest { part: Some(part) }).collect();
        let stored = client.put_file(tokio_stream::iter(parts)).await?.into_inner().segments;
        ensure!(stored as usize == segments.len(), "{stored} of {} segments are stored", segments.len());
    }
    Ok(())
}

/// Waits until all segments have vectors: how many; 0 where the service has no embedder.
async fn vectors(client: &mut Client) -> anyhow::Result<u64> {
    loop {
        let listed = client.list_collections(v1::ListCollectionsRequest::default()).await?.into_inner();
        let own = listed.collections.into_iter().find(|collection| collection.name == COLLECTION).context("the collection is gone")?;
        if listed.embedder.is_empty() || own.vectors == own.segments {
            return Ok(own.vectors);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
