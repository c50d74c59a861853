import { HOUR_MS } from "../../text/time-units.ts";
import { formatTime } from "../../text/formatting.ts";
import { duration } from "../../config/value-types.ts";
import type { RequestEntry, RequestPage } from "../../operator/operations.ts";
import type { Context } from "../command.ts";
import { follow, type Followed, followOption } from "../follow.ts";
import { limitOption } from "../list-command.ts";
import { operationCommand } from "../operation-command.ts";
import { ID_TYPES } from "../operation-flags.ts";
import { type CallOperation, locationOf } from "../calls/call.ts";
import { hasMoreAfter, pagesOf } from "../calls/pages.ts";
import { shortened, table, type TableColumn } from "../output.ts";

const MAX_LIMIT = 10_000;
/** How far back a look for new requests goes: another server may respond later, or its clock may be behind. */
const FOLLOW_BACK_MS = 5_000;

type Query = Readonly<Record<string, unknown>>;
type Servers = RequestPage["servers"];

interface Listed {
  readonly items: readonly RequestEntry[];
  readonly hasMore: boolean;
  readonly servers: Servers;
}

const OPTIONS = {
  ...followOption("requests"),
  ...limitOption(MAX_LIMIT, "requests"),
} as const;

export const requests = operationCommand<"listRequests", typeof OPTIONS, Listed>({
  name: "requests",
  operation: "listRequests",
  description:
    "Lists the last requests that meet every given condition, newest first. Servers keep them in memory, as many as --request-log has room for, until they stop: a running server on the database is asked, or the one of --server; it asks all others. --follow prints new requests as they arrive, oldest first.",
  fields: {
    keyId: { option: { type: ID_TYPES.keyId, help: "Only requests with this key" } },
    slowerThanMs: {
      flag: "slower-than",
      option: { type: duration({ min: 1, max: HOUR_MS }), help: "Only requests that took longer" },
    },
    scope: null,
    limit: null,
    cursor: null,
  },
  options: OPTIONS,
  examples: [
    "petstore requests --key 3 --status 429",
    "petstore requests --request-id f3b0aa11-4k",
    "petstore requests --status 5xx --since 1h --json",
    "petstore requests --since 2026-11-16T12:00:00Z --until 2026-11-16T12:05:00Z",
    "petstore requests --slower-than 100ms --follow",
  ],
  async request(call, { query = {} }, execution) {
    const { values, context } = execution;
    const listed = await readRequests(call, query, values.limit);
    if (values.follow) await follow(followed(call, query, listed, context), execution);
    return listed;
  },
  json: ({ items }) => items,
  text: ({ items }, { values, context }) =>
    items.length === 0
      ? `There are no such requests in the memory of the servers of ${locationOf(values)}.\n`
      : table(COLUMNS, items, context.screen),
  warning: ({ servers, hasMore }) => {
    const lines = missingOf(servers);
    if (hasMore) lines.push(`more requests follow; raise --limit, up to ${MAX_LIMIT}, or set conditions`);
    return lines.length === 0 ? undefined : lines.join("\n");
  },
});

async function readRequests(call: CallOperation, query: Query, limit: number): Promise<Listed> {
  const items: RequestEntry[] = [];
  const servers = new Map<string, Servers[number]>();
  let hasMore = false;
  const read = (page: object) => call("listRequests", { query: { ...query, ...page } });
  for await (const page of pagesOf({ limit, read })) {
    items.push(...page.items);
    hasMore = hasMoreAfter(page);
    // What a server had for an earlier page stays missing, also if the next page has older requests of it.
    for (const server of page.servers) {
      const problem = servers.get(server.id)?.problem ?? server.problem;
      servers.set(server.id, { ...server, problem });
    }
  }
  return { items, hasMore, servers: [...servers.values()] };
}

function followed(
  call: CallOperation,
  query: Query,
  listed: Listed,
  { warn }: Context,
): Followed<RequestEntry> {
  // Requests before the first page are not new.
  const start = (listed.hasMore && listed.items.at(-1)?.id) || 0n;
  /** The times of the requests that were printed, also of those whose server does not respond now. */
  const printed = new Map<bigint, number>();
  let missing: readonly string[] = [];
  let warned: readonly string[] = [];
  let newestAt = 0;
  const isKnown = ({ id }: RequestEntry) => id < start || printed.has(id);
  const newIn = ({ items, servers }: Listed) => {
    const fresh = items.filter((item) => !isKnown(item)).toReversed();
    for (const { id, at } of fresh) printed.set(id, Date.parse(at));
    missing = missingOf(servers);
    // The times are those of the clock of the servers.
    newestAt = Math.max(newestAt, ...fresh.slice(-1).map(({ at }) => Date.parse(at)));
    for (const [id, at] of printed) if (at < newestAt - FOLLOW_BACK_MS) printed.delete(id);
    return fresh;
  };
  return {
    first: newIn(listed),
    async next() {
      const since = newestAt === 0 ? {} : { since: formatTime(newestAt - FOLLOW_BACK_MS) };
      const read = await readRequests(call, { ...query, ...since }, MAX_LIMIT);
      if (hasGap(read, isKnown)) warn(`there are more than ${MAX_LIMIT} new requests; some are not shown`);
      return newIn(read);
    },
    line: textOf,
    warnings() {
      const fresh = missing.filter((each) => !warned.includes(each));
      warned = missing;
      return fresh;
    },
  };
}

/** Whether a server has requests between those that were read and those that are known. */
function hasGap({ items, servers, hasMore }: Listed, isKnown: (item: RequestEntry) => boolean): boolean {
  if (!hasMore) return false;
  return servers.some(({ id, since }) => {
    const oldest = items.findLast(({ server }) => server === id);
    return oldest !== undefined && !isKnown(oldest) && (since ?? "") < oldest.at;
  });
}

function missingOf(servers: Servers): string[] {
  return servers.flatMap(({ name, problem }) =>
    problem === null ? [] : `without the requests of ${name}: ${problem}`,
  );
}

const COLUMNS: readonly TableColumn<RequestEntry>[] = [
  ["TIME", ({ at }, screen) => screen.time(at)],
  ["STATUS", ({ status }) => `${status}`],
  ["CODE", ({ code }) => code ?? "-"],
  ["MS", ({ durationMs }) => durationMs.toFixed(durationMs < 10 ? 2 : 0)],
  ["KEY", keyText],
  ["REQUEST", ({ method, path }) => `${method} ${path}`],
  ["REQUEST ID", ({ requestId }) => requestId],
  ["ADDRESS", ({ address }) => address],
  ["USER AGENT", ({ userAgent }) => userAgent ?? "-"],
  ["MESSAGE", ({ message }) => message ?? "-"],
];

function keyText({ keyId, keyName }: RequestEntry): string {
  return keyId === null ? "-" : [keyId, keyName && shortened(keyName, 20)].filter(Boolean).join(" ");
}

function textOf(entry: RequestEntry): string {
  const { at, status, durationMs, method, path, code, requestId, message } = entry;
  const ms = durationMs.toFixed(2).padStart(8);
  const request = `${method} ${path}`;
  const line = `${at} ${status} ${ms} ms  key ${keyText(entry)}  ${request}  ${code ?? "-"}  ${requestId}`;
  return message ? `${line}  ${message}` : line;
}
