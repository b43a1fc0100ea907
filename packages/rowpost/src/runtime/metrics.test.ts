import { describe, expect, test } from "vitest";
import { METRICS, silentMetrics } from "./metrics.ts";
import { createMetricsRegistry } from "./metrics-registry.ts";

describe("metrics", () => {
  test("names, help and labels follow the rules of Prometheus, and durations say their unit", () => {
    for (const [name, { kind, help, labels }] of Object.entries(METRICS)) {
      expect(name).toMatch(/^rowpost_[a-z_]+$/);
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
      for (const label of labels) expect(label).toMatch(/^[a-z]+$/);
      expect(name.endsWith("_total"), `${name} is a ${kind}`).toBe(kind === "counter");
      if (kind === "histogram") expect(name).toMatch(/_ms$/);
    }
  });

  test("the listener answers with the exposition, as the type that Prometheus 3 asks for", () => {
    const metrics = createMetricsRegistry();
    metrics.gauge("rowpost_in_flight", {}, 3);
    const said: string[] = [];
    metrics.listener(undefined, {
      setHeader: (name, value) => said.push(`${name}: ${value}`),
      end: (text) => said.push(text),
    });
    expect(said).toEqual(["content-type: text/plain; version=0.0.4; charset=utf-8", metrics.exposition()]);
  });

  test("the silent default takes everything", () => {
    silentMetrics.increment("rowpost_published_total", { topic: "orders" }, 3);
    silentMetrics.gauge("rowpost_in_flight", {}, 1);
    silentMetrics.observe("rowpost_scan_duration_ms", {}, 1);
  });

  test("prints counters, gauges and cumulative histograms in the text format", () => {
    const metrics = createMetricsRegistry({ bucketsMs: [1, 10] });
    metrics.increment("rowpost_published_total", { topic: "orders" }, 3);
    metrics.increment("rowpost_published_total", { topic: "orders" });
    metrics.increment("rowpost_publish_failures_total", { topic: "orders", scope: "message" });
    metrics.gauge("rowpost_in_flight", {}, 7);
    metrics.gauge("rowpost_in_flight", {}, 5);
    for (const value of [0.5, 1, 2, 50]) metrics.observe("rowpost_scan_duration_ms", {}, value);
    expect(metrics.exposition().split("\n")).toEqual([
      `# HELP rowpost_published_total ${METRICS.rowpost_published_total.help}`,
      "# TYPE rowpost_published_total counter",
      'rowpost_published_total{topic="orders"} 4',
      `# HELP rowpost_publish_failures_total ${METRICS.rowpost_publish_failures_total.help}`,
      "# TYPE rowpost_publish_failures_total counter",
      'rowpost_publish_failures_total{topic="orders",scope="message"} 1',
      `# HELP rowpost_in_flight ${METRICS.rowpost_in_flight.help}`,
      "# TYPE rowpost_in_flight gauge",
      "rowpost_in_flight 5",
      `# HELP rowpost_scan_duration_ms ${METRICS.rowpost_scan_duration_ms.help}`,
      "# TYPE rowpost_scan_duration_ms histogram",
      'rowpost_scan_duration_ms_bucket{le="1"} 2',
      'rowpost_scan_duration_ms_bucket{le="10"} 3',
      'rowpost_scan_duration_ms_bucket{le="+Inf"} 4',
      "rowpost_scan_duration_ms_sum 53.5",
      "rowpost_scan_duration_ms_count 4",
      "",
    ]);
    expect(createMetricsRegistry().exposition()).toBe("");
  });

  test("label values are escaped", () => {
    const metrics = createMetricsRegistry();
    metrics.increment("rowpost_published_total", { topic: 'a"b\\c\nd' });
    expect(metrics.exposition()).toContain('{topic="a\\"b\\\\c\\nd"} 1');
  });

  test("series beyond the bound go together into one", () => {
    const metrics = createMetricsRegistry({ maxSeriesPerMetric: 2 });
    for (let index = 0; index < 1_000; index += 1)
      metrics.increment("rowpost_failed_total", { topic: `topic-${index}` });
    const lines = metrics.exposition().trim().split("\n").slice(2);
    expect(lines).toEqual([
      'rowpost_failed_total{topic="topic-0"} 1',
      'rowpost_failed_total{topic="topic-1"} 1',
      'rowpost_failed_total{topic="_other"} 998',
    ]);
  });

  test("value reads one series", () => {
    const metrics = createMetricsRegistry();
    metrics.increment("rowpost_published_total", { topic: "orders" }, 2);
    metrics.observe("rowpost_publish_duration_ms", { topic: "orders" }, 12);
    expect(metrics.value("rowpost_published_total", { topic: "orders" })).toBe(2);
    expect(metrics.value("rowpost_published_total", { topic: "other" })).toBe(0);
    expect(metrics.value("rowpost_publish_duration_ms", { topic: "orders" })).toBe(1);
  });

  test("two labels whose values run together are two series", () => {
    const metrics = createMetricsRegistry();
    metrics.increment("rowpost_publish_failures_total", { topic: "a", scope: "bc" });
    metrics.increment("rowpost_publish_failures_total", { topic: "ab", scope: "c" });
    expect(metrics.value("rowpost_publish_failures_total", { topic: "a", scope: "bc" })).toBe(1);
  });
});
