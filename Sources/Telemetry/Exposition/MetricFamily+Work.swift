// MetricFamily+Work: the metrics of the manager: flights, freshness and prefetching.

extension MetricFamily {
  /// The metrics of flights, stale responses and prefetching.
  static let work: [MetricFamily] = [
    .gauges("pictor_flights_running", by: "kind", "Running flights.") {
      ["source": $0.flights.sources, "variant": $0.flights.variants]
    },
    .gauge("pictor_flight_participants_waiting", "Requests that wait for flights.") {
      $0.flights.waiting
    },
    .counter("pictor_flights_started_total", "Flights started.") { $0.flights.started },
    .counter("pictor_flights_coalesced_requests_total", "Requests that joined a flight.") {
      $0.flights.coalesced
    },
    .counter("pictor_flights_cancelled_total", "Flights cancelled.") { $0.flights.cancelled },
    .gauge("pictor_failed_urls", "Entries of the negative cache.") { $0.flights.failedURLs },
    .counter("pictor_sources_served_instead_total", "Results replaced by smaller sources.") {
      $0.flights.sourcesInstead
    },
    .counter("pictor_variants_derived_total", "Variants derived from larger ones.") {
      $0.flights.derived
    },
    .counter("pictor_deferred_avifs_encoded_total", "AVIFs encoded in the background.") {
      $0.flights.avifsLater
    },
    .gauge("pictor_deferred_avifs_waiting", "AVIFs queued or encoded in the background now.") {
      $0.flights.avifsWaiting
    },
    .counter("pictor_deferred_avifs_failed_total", "AVIFs that failed in the background.") {
      $0.flights.avifsFailed
    },
    .gauge("pictor_recompressions_waiting", "Variants queued or recompressed now.") {
      $0.recompression.waiting
    },
    .counters("pictor_recompressions_total", by: "result", "Recompressed variants, by result.") {
      [
        "smaller": $0.recompression.smaller, "unchanged": $0.recompression.unchanged,
        "failed": $0.recompression.failed,
      ]
    },
    .counters(
      "pictor_recompressed_bytes_total", by: "time", "Bytes of variants that became smaller."
    ) {
      ["before": $0.recompression.bytesBefore, "after": $0.recompression.bytesAfter]
    },
    .fraction(
      .counter, "pictor_recompression_processor_seconds_total",
      "Processor time of workers that recompressed variants."
    ) {
      $0.recompression.processorSeconds
    },
    .counters("pictor_stale_responses_total", by: "reason", "Stale responses, by reason.") {
      [
        "while_revalidate": $0.freshness.staleWhileRevalidate,
        "if_error": $0.freshness.staleIfError, "max_stale": $0.freshness.maxStale,
      ]
    },
    .counter("pictor_revalidations_started_total", "Background revalidations started.") {
      $0.freshness.revalidations
    },
    .gauge("pictor_revalidations_running", "Background revalidations that run.") {
      $0.freshness.revalidating
    },
    .counter("pictor_revalidations_failed_total", "Background revalidations that failed.") {
      $0.freshness.revalidationsFailed
    },
    .gauge("pictor_failing_sources", "Sources in back-off because their origin failed.") {
      $0.freshness.failingSources
    },
    .counter("pictor_sources_from_future_total", "Sources found with a time ahead of the clock.") {
      $0.freshness.clockSetBack
    },
    .gauge("pictor_prefetch_lists", "Running prefetch lists.") { $0.prefetch.lists },
    .gauge("pictor_prefetch_images_waiting", "Images that wait for their prefetch.") {
      $0.prefetch.waiting
    },
    .gauge("pictor_prefetch_images_running", "Images being prefetched.") { $0.prefetch.running },
    .gauge("pictor_prefetch_images_limit", "The most images prefetched at once.") {
      $0.prefetch.limit
    },
    .counters("pictor_prefetch_images_total", by: "result", "Prefetched images, by result.") {
      [
        "finished": $0.prefetch.finished, "skipped": $0.prefetch.skipped,
        "failed": $0.prefetch.failed,
      ]
    },
  ]
}
