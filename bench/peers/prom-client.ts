/** What `bench/metrics.ts` measures, counted by prom-client: `npx bun bench/peers/prom-client.ts`. */
import { collectDefaultMetrics, Counter, Histogram, register } from "prom-client";
import { DURATION_BOUNDS } from "../../src/observe/monitors.ts";
import { measureMetrics, OBSERVED_REQUESTS } from "../metrics.ts";

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

await measureMetrics("prom-client, labels", {
  observe({ operation, plan, response: { status } }, startedAt) {
    responses.inc({ operation, status });
    durations.observe({ operation }, (performance.now() - startedAt) / 1000);
    decisions.inc({ plan, outcome: "allowed" });
  },
  expose: () => register.metrics(),
});

const children = new Map(
  OBSERVED_REQUESTS.map((request) => {
    const { operation, plan, response } = request;
    const child = {
      responses: responses.labels({ operation, status: response.status }),
      durations: durations.labels({ operation }),
      decisions: decisions.labels({ plan, outcome: "allowed" }),
    };
    return [request, child];
  }),
);
collectDefaultMetrics();

await measureMetrics("prom-client, one child for each set of labels, and its default metrics", {
  observe(request, startedAt) {
    const child = children.get(request);
    child?.responses.inc();
    child?.durations.observe((performance.now() - startedAt) / 1000);
    child?.decisions.inc();
  },
  expose: () => register.metrics(),
});
process.exit(0);
