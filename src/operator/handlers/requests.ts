import { countedAddress, parseIpAddress } from "../../runtime/ip-network.ts";
import { cursorAfter, encodeCursor } from "../../domain/cursor.ts";
import { pageOf } from "../../domain/pages.ts";
import { formatOptionalTime, formatTime } from "../../text/formatting.ts";
import { crc32 } from "../../runtime/hash.ts";
import { nameOfServer } from "../../domain/servers.ts";
import { type LoggedRequest, STAMPS_PER_MS } from "../../observe/request-log.ts";
import { ADMIN_PAGE_LIMIT, type QueryOf, type RequestPage } from "../operations.ts";
import { askOthers, ownState } from "./other-servers.ts";
import type { AdminHandlers } from "./context.ts";
import { keyNamesOf } from "./key-names.ts";
import type { Services } from "../services.ts";

type Query = QueryOf<"listRequests">;

/**
 * An identifier of a request is its stamp, so that identifiers are in the order of times, and one of so many numbers of
 * its server. Two servers seldom have the same number.
 */
const SERVER_NUMBERS = 1_024n;

/** The log has an IPv6 address as its network. */
function loggedAddress(text: string): string {
  const address = parseIpAddress(text.replace(/\/64$/, ""));
  return address ? countedAddress(address) : text;
}

export function requestHandlers({
  requestLog,
  servers,
  keys,
  questions,
}: Pick<Services, "requestLog" | "servers" | "keys" | "questions">) {
  const { self } = servers;
  const serverNumber = BigInt(crc32(self.id)) % SERVER_NUMBERS;

  return {
    async listRequests({ query }) {
      const { limit = ADMIN_PAGE_LIMIT.default, scope } = query;
      const [own, others] = await Promise.all([
        ownPage(query, limit),
        scope === "server" ? [] : pagesOfOthers(query),
      ]);
      const pages = [own, ...others];
      const items = pages.flatMap((page) => page.items).toSorted((a, b) => (a.id < b.id ? 1 : -1));
      const page = pageOf(items, limit);
      const hasMore = page.hasMore || pages.some(({ nextCursor }) => nextCursor !== null);
      return {
        // The server that asks knows the names, too.
        items: scope === "server" ? page.items : await withKeyNames(page.items),
        nextCursor: cursorAfter("requests", { ...page, hasMore }),
        servers: pages.flatMap((page) => page.servers),
      };
    },
  } satisfies Partial<AdminHandlers>;

  /** Adds the names of the keys. Requests are shown without them in an outage of the database. */
  async function withKeyNames(items: RequestPage["items"]): Promise<RequestPage["items"]> {
    const ids = items.map(({ keyId }) => keyId);
    const names = await keyNamesOf(keys, ids).catch(() => undefined);
    return names ? items.map((item) => ({ ...item, keyName: names.get(item.keyId) ?? null })) : items;
  }

  async function ownPage(query: Query, limit: number): Promise<RequestPage> {
    const { id } = self;
    const name = nameOfServer(await ownState(servers));
    if (requestLog === undefined) {
      const problem = "the request log is off; restart the server without --request-log 0 to turn it on";
      return { items: [], nextCursor: null, servers: [{ id, name, problem, since: null }] };
    }
    const { items, hasMore } = await requestLog.find(conditionsOf(query), limit);
    const server = {
      id,
      name,
      problem: null,
      since: formatOptionalTime(requestLog.since),
    };
    const viewed = items.map(viewOf);
    return {
      items: viewed,
      nextCursor: cursorAfter("requests", { items: viewed, hasMore }),
      servers: [server],
    };
  }

  function conditionsOf({ keyId, status, since, until, cursor, address, ...query }: Query) {
    const beforeTime = until === undefined ? Infinity : Date.parse(until) * STAMPS_PER_MS;
    // This is one more than the greatest stamp whose identifier is below the cursor.
    const beforeCursor =
      cursor === undefined
        ? Infinity
        : Number((cursor - serverNumber + SERVER_NUMBERS - 1n) / SERVER_NUMBERS);
    const statusWith = (digit: string) => Number(status?.replaceAll("x", digit));
    return {
      ...query,
      ...(address !== undefined && { address: loggedAddress(address) }),
      ...(keyId !== undefined && { keyId: Number(keyId) }),
      ...(status !== undefined && { statuses: [statusWith("0"), statusWith("9")] as const }),
      ...(since !== undefined && { from: Date.parse(since) * STAMPS_PER_MS }),
      before: Math.min(beforeTime, beforeCursor),
    };
  }

  function viewOf({ stamp, ...request }: LoggedRequest): RequestPage["items"][number] {
    const at = formatTime(Math.floor(stamp / STAMPS_PER_MS));
    return { id: BigInt(stamp) * SERVER_NUMBERS + serverNumber, at, ...request, server: self.id };
  }

  async function pagesOfOthers(query: Query): Promise<readonly RequestPage[]> {
    const cursor = query.cursor === undefined ? undefined : encodeCursor("requests", query.cursor);
    const own = { ...query, cursor, scope: "server" };
    const asked = await askOthers("listRequests", own, { servers, questions });
    return asked.map(({ server, body: page, problem }) => {
      const { id } = server;
      const [responder] = page?.servers ?? [];
      return {
        // A server reports only its own requests.
        items: page?.items.filter((item) => item.server === id) ?? [],
        nextCursor: page?.nextCursor ?? null,
        servers: [
          {
            id,
            name: nameOfServer(server),
            problem: problem ?? responder?.problem ?? null,
            since: responder?.since ?? null,
          },
        ],
      };
    });
  }
}
