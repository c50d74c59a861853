import { afterAll, beforeAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { HttpServer, RequestHandler } from "../../src/http1/index.ts";
import { CLOSES, type Outcome, WAITS } from "./cases/case.ts";
import { echoHandler, startEchoServer } from "./echo-server.ts";
import { cuts, mutatedStream, segmentsOf, validStream } from "./generated-streams.ts";
import { outcomesOf, RawClient, ResponseReader } from "./raw-client.ts";
import { readStream } from "./reference-parser.ts";
import { nextTurn, TestConnection } from "./test-connection.ts";

/*
 * Streams of requests, cut into segments at random, against the reference parser. A failure prints the seed and the
 * smallest stream; HTTP1_FUZZ_SEED repeats it, HTTP1_FUZZ_RUNS sets how many streams there are.
 */
const seed = Number(process.env["HTTP1_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const runs = Number(process.env["HTTP1_FUZZ_RUNS"] ?? 4_000);
console.log(`HTTP/1.1 streams: seed ${seed}, ${runs} of each kind`);

/** Without what is not seen from outside once the client has closed its sending side. */
const expectedOf = (stream: string) =>
  readStream(stream).filter((outcome) => outcome !== CLOSES && outcome !== WAITS);

/** Responds only in a later turn of the event loop, so that further requests arrive meanwhile. */
const slowHandler: RequestHandler = {
  ...echoHandler,
  handle: async (request) => {
    await nextTurn();
    return echoHandler.handle(request);
  },
};

async function outcomesInProcess(
  segments: readonly string[],
  { handler, pauses }: { handler: RequestHandler; pauses: boolean },
): Promise<Outcome[]> {
  const connection = new TestConnection(handler.handle);
  connection.handler = handler;
  for (const segment of segments) {
    connection.receive(segment);
    if (pauses) await nextTurn();
  }
  connection.connection.onEnd();
  while (!connection.events.some((event) => event === "end" || event === "shutdown")) await nextTurn();
  const reader = new ResponseReader();
  reader.add(connection.sent);
  expect(reader.incomplete).toBe("");
  return outcomesOf(reader.responses);
}

const kinds = { "valid requests": validStream, "requests with mutations": mutatedStream };

for (const [kind, stream] of Object.entries(kinds)) {
  test(`${kind}, cut anywhere, are read as the reference parser reads them`, async () => {
    const property = fc.asyncProperty(
      stream,
      cuts,
      fc.boolean(),
      fc.boolean(),
      async (text, fractions, isSlow, pauses) => {
        const handler = isSlow ? slowHandler : echoHandler;
        const outcomes = await outcomesInProcess(segmentsOf(text, fractions), { handler, pauses });
        expect(outcomes).toEqual(expectedOf(text));
      },
    );
    await fc.assert(property, { seed, numRuns: runs });
  }, 120_000);
}

let server: HttpServer;
beforeAll(() => void (server = startEchoServer()));
afterAll(() => server.close(0));

async function outcomesOverTcp(segments: readonly string[]): Promise<Outcome[]> {
  const client = new RawClient(server.port);
  for (const segment of segments) {
    await client.send(segment);
    await nextTurn();
  }
  client.endSending();
  await client.closed;
  expect(client.incomplete).toBe("");
  return outcomesOf(client.responses);
}

for (const [kind, stream] of Object.entries(kinds)) {
  test(`${kind}, over TCP, are read as the reference parser reads them`, async () => {
    const property = fc.asyncProperty(stream, cuts, async (text, fractions) => {
      expect(await outcomesOverTcp(segmentsOf(text, fractions))).toEqual(expectedOf(text));
    });
    await fc.assert(property, { seed, numRuns: Math.ceil(runs / 10) });
  }, 120_000);
}

test("of the streams with mutations many are rejected, and many have requests that are handled", () => {
  const outcomes = fc.sample(mutatedStream, { seed, numRuns: 1_000 }).map((stream) => readStream(stream));
  const share = (isIt: (outcome: Outcome | undefined) => boolean) =>
    outcomes.filter(([first, ...more]) => isIt(more.at(-1) ?? first)).length / outcomes.length;
  expect(share((last) => last === 400)).toBeGreaterThan(0.2);
  expect(share((last) => last === WAITS)).toBeGreaterThan(0.02);
  expect(outcomes.filter(([first]) => typeof first === "string" && first !== WAITS).length).toBeGreaterThan(
    200,
  );
});
