import { Database } from "bun:sqlite";
import { contestant } from "./contestants.ts";
import { exchange, headerOf, type RawReply } from "./raw.ts";
import { ownHeaders, type Reply } from "./replies.ts";
import { fill, templateOf } from "./requests.ts";
import type { Server } from "./servers.ts";
import type { Values } from "./values.ts";
import { type Ask, asksOf, statusOf, type Work, type WorkId } from "./work.ts";
import type { Figures } from "./wrk.ts";

/** A server that answers wrongly is never measured, and a round with a wrong answer in it stops the run. */
export class WrongAnswer extends Error {}

const PAGE = 20;

/** Asks each of a work's requests once. Gives the mean size of an answer, by which a round is checked. */
export async function checkAnswers(server: Server, work: Work, values: Values): Promise<number> {
  let bytes = 0;
  for (const ask of asksOf(work)) {
    const reply = await askOnce(server, work, ask, values);
    const fault = faultOf(server, { work, ask }, reply);
    if (fault !== undefined) {
      throw new WrongAnswer(
        `${server.id}, ${work.title}: ${fault}\n${reply.status} ${reply.body.slice(0, 300)}`,
      );
    }
    bytes += (reply.bytes * (work.asks[ask] ?? 0)) / 100;
  }
  return bytes;
}

export function askOnce(server: Server, work: Work, ask: Ask, values: Values): Promise<RawReply> {
  const template = templateOf(ask, work, server.dialect, values);
  return exchange(server.originFor(work.id as WorkId), fill(template, values));
}

function faultOf(
  server: Server,
  { work, ask }: { work: Work; ask: Ask },
  reply: RawReply,
): string | undefined {
  const { kind } = contestant(server.id);
  const expected = statusOf(work, ask);
  if (reply.status !== expected) return `${ask} answered ${reply.status} and not ${expected}`;
  // Peers refuse a stranger before they count; Petstore counts strangers too, by address.
  const counts =
    kind !== "node" && kind !== "bun" ? true : work.credential === "open" || work.credential === "spent";
  if (counts && !saysWhereCallerStands(reply)) return `${ask} came without rate-limit headers`;
  return expected < 300 ? bodyFault(ask, reply.body, kind === "mock") : undefined;
}

function saysWhereCallerStands(reply: RawReply): boolean {
  return ["limit", "remaining", "reset"].every(
    (name) =>
      headerOf(reply, `x-ratelimit-${name}`) !== undefined ||
      headerOf(reply, `ratelimit-${name}`) !== undefined,
  );
}

function bodyFault(ask: Ask, body: string, isMock: boolean): string | undefined {
  const value: unknown = JSON.parse(body);
  if (ask === "get" || ask === "get-one" || ask === "create") {
    return typeof value === "object" && value !== null && "id" in value && "name" in value
      ? undefined
      : `${ask} answered no animal`;
  }
  if (!Array.isArray(value)) return `${ask} answered no list`;
  // A mock repeats the document's example, which is shorter.
  return isMock || value.length === PAGE ? undefined : `${ask} answered ${value.length} animals`;
}

/** The limits must repeat exactly what Petstore answered. */
export function sameAnswer(server: Server, reply: RawReply, model: Reply): void {
  const given = new Map(ownHeaders(reply).map(([name, value]) => [name.toLowerCase(), value]));
  const differs = Object.entries(model.headers).find(
    ([name, value]) => given.get(name.toLowerCase()) !== value,
  );
  if (reply.status === model.status && reply.body === model.body && differs === undefined) return;
  throw new WrongAnswer(
    `${server.id} does not repeat Petstore's answer: ${differs?.join(": ") ?? reply.body}`,
  );
}

/** Ends of a list are shorter and identifiers grow; a page of errors in place of animals is far outside this. */
const SIZE_TOLERANCE = 0.12;
/** A peer's window of a minute may open anew during a round, for the one request that the spent key has. */
const MAX_READMITTED = 2;

export function checkRound(server: Server, work: Work, figures: Figures, expectedBytes: number): void {
  const { requests, refused, failed, bytes } = figures;
  const wrong = (what: string) => new WrongAnswer(`${server.id}, ${work.title}: ${what}`);
  if (requests === 0) throw wrong("nothing was answered");
  if (failed > 0) throw wrong(`${failed} connections failed`);
  const welcome = requests - refused;
  if ((work.status ?? 200) < 400 && refused > 0) throw wrong(`${refused} of ${requests} were refused`);
  if ((work.status ?? 200) >= 400 && welcome > MAX_READMITTED)
    throw wrong(`${welcome} of ${requests} were let in`);
  const off = bytes / requests / expectedBytes - 1;
  if (Math.abs(off) > SIZE_TOLERANCE) {
    throw wrong(
      `answers of ${Math.round(bytes / requests)} bytes where ${Math.round(expectedBytes)} were expected`,
    );
  }
}

export function highestId(path: string): number {
  using database = new Database(path, { readonly: true });
  const row = database
    .query<{ seq: number }, []>("SELECT seq FROM sqlite_sequence WHERE name = 'pets'")
    .get();
  return row?.seq ?? 0;
}

/** Every create that was answered is a row; others may have been under way when time was up. */
export function checkRows(server: Server, work: Work, counts: { rows: number; requests: number }): void {
  const share = (work.asks.create ?? 0) / 100;
  const { rows, requests } = counts;
  // The pattern of a work spreads its creates evenly, so that any stretch of requests holds its share of them, give
  // or take one.
  const fewest = Math.floor(requests * share) - 1;
  const most = Math.ceil((requests + work.connections) * share) + 1;
  if (rows >= fewest && rows <= most) return;
  throw new WrongAnswer(
    `${server.id}, ${work.title}: of ${requests} requests ${fewest} to ${most} rows should have come, and ${rows} did`,
  );
}
