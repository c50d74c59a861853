/* Measures the processor time of the metrics for one request: `npx bun bench/metrics.ts`. */

import type { Request, Response } from "../src/http1/index.ts";
import { RequestMetrics } from "../src/observe/request-metrics.ts";
import { RequestRecord } from "../src/observe/request-record.ts";
import { PETSTORE_API, RESPONSE_STATUSES } from "../src/petstore/operations.ts";
import { compare } from "./cpu-time.ts";

const REQUEST: Request = {
  method: "GET",
  path: "/v1/pets",
  query: "",
  headers: { get: () => null } as unknown as Request["headers"],
  remoteAddress: "127.0.0.1",
  clientAddress: "127.0.0.1",
  body: () => undefined,
  markAuthenticated: () => {},
};
const WINDOW = { limit: 60, remaining: 59, resetAt: 0, strikes: 0 };
const DECISION = {
  outcome: "allowed",
  ...WINDOW,
  retryAfterSeconds: 0,
  minute: WINDOW,
  day: WINDOW,
} as const;
const KEY = { keyId: 1, subject: { kind: "key", id: 1 }, access: "write" } as const;
const LIMITS = { perMinute: 60, perDay: 1_000 };

/** The requests in the benchmark's mix. */
const OBSERVED = [
  observed("listPets", 200),
  observed("getPet", 200),
  observed("createPet", 201),
  observed("listPets", 304),
  observed("placeOrder", 409),
];

function observed(operation: string, status: Response["status"]) {
  const authentication = { ...KEY, plan: status === 200 ? "pro" : "free", limits: LIMITS } as const;
  return { operation, authentication, response: { status, headerLines: "", body: null } };
}

const metrics = new RequestMetrics({
  operations: RESPONSE_STATUSES,
  isApiPath: (path) => PETSTORE_API.has(path),
});

function observe(call: number): void {
  const startedAt = performance.now();
  const seen = OBSERVED[call % OBSERVED.length];
  if (seen === undefined) return;
  // The server makes one record of each request for all observers.
  const record = new RequestRecord(REQUEST, "id");
  record.durationMs = performance.now() - startedAt;
  record.decision = DECISION;
  record.operation = seen.operation;
  record.authentication = seen.authentication;
  metrics.observe(record, seen.response);
}

compare("a request", { "with metrics": observe, without: () => performance.now() }, 200_000);
