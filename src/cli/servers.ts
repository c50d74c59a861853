import { grouped } from "../text/formatting.ts";
import type { Fleet } from "../operator/operations.ts";
import { operationCommand } from "./operation-command.ts";
import { locationOf } from "./operation-call.ts";
import { table, type TableColumn } from "./output.ts";

type Row = Fleet["total"] & Partial<Fleet["items"][number]>;

const COLUMNS: readonly TableColumn<Row>[] = [
  ["NAME", ({ name = "all" }) => name],
  ["ADMIN URL", ({ adminUrl }) => adminUrl ?? "-"],
  ["VERSION", ({ version = "-" }) => version],
  ["STARTED", ({ startedAt = null }, screen) => screen.shortTime(startedAt)],
  ["REQ/S", ({ requestsPerSecond }) => requestsPerSecond.toFixed(1), "number"],
  ["REQUESTS", ({ requests }) => grouped(requests), "number"],
  ["REJECTED", ({ rejections }) => grouped(rejections), "number"],
  ["P50 MS", ({ p50 }) => milliseconds(p50), "number"],
  ["P99 MS", ({ p99 }) => milliseconds(p99), "number"],
  ["DIFFERS IN", ({ differing = [] }) => differing.map(({ name }) => name).join(", ") || "-"],
];

export const serversList = operationCommand({
  name: "servers list",
  operation: "listServers",
  description:
    "Lists the servers that are registered in Valkey, the oldest first. REJECTED requests were limited or banned. Requests are counted since the start of the server; P50 and P99 are response times of the last 15 minutes. A server that was killed is listed for 15 seconds more. DIFFERS IN names settings, or the version, that should be the same on all servers and are others than on most; --json has their values.",
  examples: ["petstore servers list", "petstore servers list --server https://admin.example.com --json"],
  text: ({ items, total }, { values, context: { screen } }) =>
    items.length === 0
      ? `No server is running on ${locationOf(values)}.\n`
      : table(COLUMNS, items.length === 1 ? items : [...items, total], screen),
});

export const serverSecretRotate = operationCommand({
  name: "server-secret rotate",
  operation: "rotateServerSecret",
  examples: [
    "petstore server-secret rotate",
    "petstore server-secret rotate --server https://admin.example.com",
  ],
  json: () => ({ rotated: true }),
  text: (_result, { values }) =>
    `The servers of ${locationOf(values)} have a new secret. Those that are running take it within a second.\n`,
});

function milliseconds(value: number | null): string {
  return value === null ? "-" : value.toFixed(value < 10 ? 2 : 0);
}
