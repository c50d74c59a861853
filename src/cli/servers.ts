import { grouped } from "../api/formatting.ts";
import { printable } from "../config/usage-error.ts";
import type { Fleet } from "../operator/operations.ts";
import { operationCommand } from "./operation-command.ts";
import { whereOf } from "./operator.ts";
import { columns, type Screen } from "./output.ts";

const HEADER = [
  "NAME",
  "ADMIN URL",
  "VERSION",
  "STARTED",
  "REQ/S",
  "REQUESTS",
  "REJECTED",
  "P50 MS",
  "P99 MS",
];

export const serversList = operationCommand({
  name: "servers list",
  operation: "listServers",
  summary: "List the servers that share the rate limits",
  description:
    "Lists the servers that tell of themselves in Valkey, the oldest first. REJECTED requests were limited or banned. Requests are counted since the start of the server; P50 and P99 are response times of the last 15 minutes. A server that was killed is listed for 15 seconds more.",
  examples: ["petstore servers list", "petstore servers list --server https://admin.example.com --json"],
  text: (fleet, { values, context: { screen } }) =>
    fleet.items.length === 0
      ? `No server is running on ${whereOf(values)}.\n`
      : columns([HEADER, ...rows(fleet, screen)], { numbers: [4, 5, 6, 7, 8], screen }),
});

function rows({ items, total }: Fleet, screen: Screen): string[][] {
  const servers = items.map((each) => [
    printable(each.name),
    each.adminUrl ?? "-",
    each.version,
    screen.shortTime(each.startedAt),
    ...figures(each),
  ]);
  return items.length === 1 ? servers : [...servers, ["all", "-", "-", "-", ...figures(total)]];
}

function figures({ requestsPerSecond, requests, rejections, p50, p99 }: Fleet["total"]): string[] {
  const counts = [grouped(requests), grouped(rejections)];
  return [requestsPerSecond.toFixed(1), ...counts, milliseconds(p50), milliseconds(p99)];
}

function milliseconds(value: number | null): string {
  return value === null ? "-" : value.toFixed(value < 10 ? 2 : 0);
}
