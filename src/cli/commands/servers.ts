import { grouped } from "../../text/formatting.ts";
import { clockProblem } from "../../domain/clock-difference.ts";
import { LATE_SECONDS } from "../../operator/operations/servers.ts";
import { settingText } from "../../operator/operations/settings.ts";
import type { ServerList, Setting } from "../../operator/operations.ts";
import { operationCommand } from "../operation-command.ts";
import { locationOf } from "../calls/call.ts";
import { type Screen, table, type TableColumn } from "../output.ts";

type Row = ServerList["total"] & Partial<ServerList["items"][number]>;

const STATE_COLORS = { up: "green", unknown: "yellow", lost: "red" } as const;

const COLUMNS: readonly TableColumn<Row>[] = [
  ["NAME", ({ name = "all" }) => name],
  ["STATE", ({ state }, screen) => (state ? screen.coloredCell(STATE_COLORS[state], state) : "-")],
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
  description: `Lists the servers on the database, the oldest first. STATE is up, unknown if the database was unavailable to the server of --server for ${LATE_SECONDS} seconds, or lost: it was killed in the last hour and has not started again. REJECTED requests were limited or banned. Requests are counted since the start of the server; P50 and P99 are response times of the last 15 minutes. DIFFERS IN names settings, or the version, that should be the same on all servers and are others than on most; --json has their values.`,
  examples: ["petstore servers list", "petstore servers list --server https://admin.example.com --json"],
  text: ({ items, total }, { values, context: { screen } }) =>
    items.length === 0
      ? `No server is running on ${locationOf(values)}.\n`
      : table(COLUMNS, items.length === 1 ? items : [...items, total], screen) +
        clockText(items) +
        lostText(items, screen),
});

function clockText(items: ServerList["items"]): string {
  const remarks = items.flatMap(({ name, state, clockAheadMs }) => {
    const problem = state === "up" ? clockProblem(clockAheadMs) : undefined;
    return problem === undefined ? [] : `${name}: ${problem}; synchronize both with NTP.\n`;
  });
  return remarks.join("");
}

/** What to make of servers that are lost: they crashed, or somebody has taken them away. */
function lostText(items: ServerList["items"], screen: Screen): string {
  const lost = items.filter(({ state }) => state === "lost");
  return lost
    .map(
      ({ name, seenAt }) =>
        `${name} was last heard of ${screen.at(seenAt)}, and did not stop in order. If it was taken away, it is listed for an hour.\n`,
    )
    .join("");
}

const SETTING_COLUMNS: readonly TableColumn<Setting>[] = [
  ["SETTING", settingText],
  ["VALUE", ({ value, given, default: initial }) => withGiven(value ?? initial ?? "-", given)],
  ["SOURCE", ({ source, variable }) => (source === "variable" ? variable : source)],
];

function withGiven(value: string, given: string | undefined): string {
  return given === undefined ? value : `${value} (set to ${given})`;
}

export const settings = operationCommand({
  name: "settings",
  operation: "getSettings",
  summary: "List the settings of the running server with their values in effect",
  description:
    "Lists the settings of a running server of this machine, or else of any on the database, or of the one of --server: each with its value in effect and where that comes from. Secrets are masked. --json has the defaults and what each setting does.",
  examples: ["petstore settings", "petstore settings --server https://admin.example.com --json"],
  json: ({ items }) => items,
  text: ({ items }, { context: { screen } }) => table(SETTING_COLUMNS, items, screen),
});

function milliseconds(value: number | null): string {
  return value === null ? "-" : value.toFixed(value < 10 ? 2 : 0);
}
