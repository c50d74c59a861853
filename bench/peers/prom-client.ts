/** What `bench/metrics.ts` measures, counted by prom-client: `npx bun bench/peers/prom-client.ts`. */
import { Counter, Histogram } from "prom-client";
import { DURATION_BOUNDS } from "../../src/observe/request-metrics.ts";
import { measureMetrics } from "../metrics.ts";

const responses = new Counter({
  name: "petstore_http_requests_total",
  help: "Responses.",
  labelNames: ["operation", "status"] as const,
});
const durations = new Histogram({
  name: "petstore_http_request_duration_seconds",
  help: "Time.",
  labelNames: ["operation"] as const,
  buckets: [...DURATION_BOUNDS],
});
const decisions = new Counter({
  name: "petstore_rate_limit_decisions_total",
  help: "Decisions.",
  labelNames: ["plan", "outcome"] as const,
});

measureMetrics("prom-client", ({ operation, plan, response: { status } }, startedAt) => {
  responses.inc({ operation, status });
  durations.observe({ operation }, (performance.now() - startedAt) / 1000);
  decisions.inc({ plan, outcome: "allowed" });
});
