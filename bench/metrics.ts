import { PETSTORE_API } from "../src/petstore/operations.ts";
/**
 * Processor time that the metrics take for one request: `npx bun bench/metrics.ts`.
 * `npx bun bench/peers/prom-client.ts` counts the same with prom-client, after `npm ci --prefix bench`.
 */
import type { OperationId } from "../src/domain/usage-history.ts";
import type { Request, Response } from "../src/http1/index.ts";
import { RequestMetrics, RequestRecord } from "../src/observe/request-metrics.ts";
import { cpuMicros } from "./cpu-time.ts";

export interface ObservedRequest {
  readonly operation: OperationId;
  readonly plan: "free" | "pro";
  readonly response: Response;
}

/** What the benchmark's mix sends. */
const OBSERVED_REQUESTS: readonly ObservedRequest[] = [
  observed("listPets", 200),
  observed("getPet", 200),
  observed("createPet", 201),
  observed("listPets", 304),
  observed("placeOrder", 409),
];

function observed(operation: OperationId, status: Response["status"]): ObservedRequest {
  const plan = status === 200 ? "pro" : "free";
  return { operation, plan, response: { status, headerLines: "", body: null } };
}

/** `startedAt` is a time of `performance.now`. */
type Observe = (request: ObservedRequest, startedAt: number) => void;

export function measureMetrics(name: string, observe: Observe): void {
  const each = (work: Observe) => (call: number) => {
    const request = OBSERVED_REQUESTS[call % OBSERVED_REQUESTS.length];
    if (request) work(request, performance.now());
  };
  const { metrics, nothing } = cpuMicros(200_000, { metrics: each(observe), nothing: each(() => {}) });
  console.log(`${name}: ${((metrics - nothing) * 1_000).toFixed(0)} ns a request`);
}

if (import.meta.main) {
  const request: Request = {
    method: "GET",
    path: "/v1/pets",
    query: "",
    headers: { get: () => null } as unknown as Request["headers"],
    remoteAddress: "127.0.0.1",
    body: () => undefined,
  };
  const decision = { outcome: "allowed", limit: 60, remaining: 59, resetAt: 0, retryAfter: 0 } as const;
  const requests = new RequestMetrics((path) => PETSTORE_API.has(path));
  const limits = { perMinute: 60, perDay: 1_000 };
  const subject = { kind: "key", id: 1 } as const;
  measureMetrics("Petstore", ({ operation, plan, response }, startedAt) => {
    // The server makes a record of each request for all observers.
    const record = new RequestRecord(request, "id");
    record.durationMs = performance.now() - startedAt;
    record.decision = decision;
    record.operation = operation;
    record.principal = { keyId: 1, subject, plan, access: "write", limits };
    requests.observe(record, response);
  });
}
