/** Processor time that the metrics take for one request: `npx bun bench/metrics.ts`. */
import type { OperationId } from "../src/domain/usage-history.ts";
import type { Request, Response } from "../src/http1/index.ts";
import { RequestMetrics, RequestRecord } from "../src/observe/request-metrics.ts";
import { PETSTORE_API } from "../src/petstore/operations.ts";
import { compare } from "./cpu-time.ts";

/** What the benchmark's mix sends. */
const OBSERVED: readonly (readonly [OperationId, Response["status"]])[] = [
  ["listPets", 200],
  ["getPet", 200],
  ["createPet", 201],
  ["listPets", 304],
  ["placeOrder", 409],
];
const REQUEST: Request = {
  method: "GET",
  path: "/v1/pets",
  query: "",
  headers: { get: () => null } as unknown as Request["headers"],
  remoteAddress: "127.0.0.1",
  body: () => undefined,
};
const DECISION = { outcome: "allowed", limit: 60, remaining: 59, resetAt: 0, retryAfter: 0 } as const;
const KEY = { keyId: 1, subject: { kind: "key", id: 1 }, access: "write" } as const;
const LIMITS = { perMinute: 60, perDay: 1_000 };

const metrics = new RequestMetrics((path) => PETSTORE_API.has(path));
const eachWith = (observe: (record: RequestRecord, response: Response) => void) => (call: number) => {
  const [operation, status] = OBSERVED[call % OBSERVED.length] ?? ["listPets", 200];
  // The server makes a record of each request for all observers.
  const startedAt = performance.now();
  const record = new RequestRecord(REQUEST, "id");
  record.durationMs = performance.now() - startedAt;
  record.decision = DECISION;
  record.operation = operation;
  record.principal = { ...KEY, plan: status === 200 ? "pro" : "free", limits: LIMITS };
  observe(record, { status, headerLines: "", body: null });
};
compare("a request", 200_000, {
  "with metrics": eachWith((record, response) => metrics.observe(record, response)),
  without: eachWith(() => {}),
});
