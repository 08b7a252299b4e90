// The overview and the comparison, without a browser.
import test from "node:test";
import assert from "node:assert/strict";
import { pointsOf, quantile, readMetrics } from "../../Sources/CInspectorPage/Page/metrics.js";
import { nice } from "../../Sources/CInspectorPage/Page/chart.js";
import { difference } from "../../Sources/CInspectorPage/Page/difference.js";
import { folded } from "../../Sources/CInspectorPage/Page/compare.js";

test("metrics are summed in total and for each route", () => {
  const sums = readMetrics([
    "# TYPE httpware_requests_total counter",
    'httpware_requests_total{listener="web",route="a",service="s",code="2xx"} 5',
    'httpware_requests_total{listener="web",route="a",service="s",code="5xx"} 2',
    'httpware_requests_total{listener="web",route="",service="",code="4xx"} 1',
    'httpware_request_duration_seconds_bucket{listener="web",route="a",le="0.1"} 4',
    'httpware_request_duration_seconds_bucket{listener="web",route="a",le="+Inf"} 7',
    'httpware_connections{side="client"} 3',
    'httpware_connections{side="origin"} 4',
    "httpware_requests_in_flight 2",
    "other_metric 9",
    "constructor 9",
    "",
  ].join("\n"));
  assert.deepEqual([sums.total, sums.bad, sums.client, sums.inFlight, sums.connections], [8, 2, 1, 2, 7]);
  assert.deepEqual([...sums.routes.keys()], ["web a", "web –"]);
  const route = sums.routes.get("web a");
  assert.deepEqual([route.total, route.bad, route.client, route.service], [7, 2, 0, "s"]);
  assert.deepEqual([...route.buckets], [[0.1, 4], [Infinity, 7]]);
});

test("a quantile lies between the limits of its bucket", () => {
  const now = new Map([[0.1, 5], [0.2, 10], [Infinity, 10]]);
  assert.equal(quantile(0.5, now), 100);
  assert.ok(Math.abs(quantile(0.75, now) - 150) < 0.001);
  assert.equal(quantile(0.5, new Map([[0.1, 0], [Infinity, 4]])), 100);
  assert.equal(quantile(0.5, now, now), NaN);
  assert.equal(quantile(0.5, new Map()), NaN);
});

test("points are the rates between two samples, and never below 0", () => {
  const sample = (time, total, bad) => ({ time, total, bad, buckets: new Map() });
  const points = pointsOf([sample(0, 10, 0), sample(2000, 30, 4), sample(4000, 5, 0)]);
  assert.deepEqual(points.map(({ time, rate, bad }) => [time, rate, bad]), [[2000, 10, 2], [4000, 0, 0]]);
  assert.deepEqual(pointsOf([]), []);
});

test("values have as many digits as they need", () => {
  assert.deepEqual([123.4, 12.34, 1, 0.123, 0].map((value) => String(nice(value))), [
    "123",
    "12.3",
    "1.0",
    "0.12",
    "0.00",
  ]);
});

const side = (lines, mark) => lines.filter((line) => line[0] !== mark).map((line) => line[1]);

test("a difference has the lines of both sides, with the fewest edits", () => {
  assert.deepEqual(difference(["a", "b", "c"], ["a", "x", "c"]), [[" ", "a"], ["-", "b"], ["+", "x"], [" ", "c"]]);
  assert.deepEqual(difference([], ["a"]), [["+", "a"]]);
  assert.deepEqual(difference([], []), []);
  for (let round = 0; round < 500; round += 1) {
    const lines = () =>
      Array.from({ length: Math.floor(Math.random() * 20) }, () => "abc"[Math.floor(Math.random() * 3)]);
    const a = lines(), b = lines(), found = difference(a, b);
    assert.deepEqual(side(found, "+"), a);
    assert.deepEqual(side(found, "-"), b);
  }
});

test("lists that differ too much are shown one after the other", () => {
  const a = Array.from({ length: 400 }, (_, index) => "a" + index), b = a.map((text) => "b" + text);
  const found = difference(["same", ...a], ["same", ...b]);
  assert.deepEqual(found.map((line) => line[0]).join(""), " " + "-".repeat(400) + "+".repeat(400));
});

test("many equal lines are folded, with three next to each difference", () => {
  const same = (count) => Array.from({ length: count }, (_, index) => [" ", "line " + index]);
  assert.deepEqual(folded(same(7)), same(7));
  assert.deepEqual(folded([...same(20), ["+", "new"]]).map((line) => line[1]), [
    "… 17 equal lines",
    "line 17",
    "line 18",
    "line 19",
    "new",
  ]);
  assert.equal(folded([["+", "new"], ...same(20), ["-", "old"]])[4][1], "… 14 equal lines");
  assert.equal(folded([["+", "new"], ...same(20)]).at(-1)[1], "… 17 equal lines");
});
