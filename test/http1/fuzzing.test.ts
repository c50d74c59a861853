import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { HttpServer, RequestHandler } from "../../src/http1/index.ts";
import { CLOSES, type Outcome, WAITS } from "./cases/case.ts";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { echoHandler, outcomesOf, startEchoServer } from "./echo-server.ts";
import { cuts, mutatedStream, segmentsOf, validStream } from "./generated-streams.ts";
import { readStream } from "./reference-parser.ts";
import { nextTurn, TestConnection } from "./test-connection.ts";

/*
 * Streams of requests, cut into segments at random, against the reference parser. A failure prints the smallest stream.
 * HTTP1_FUZZ_SEED and HTTP1_FUZZ_RUNS explore others.
 */
const seed = Number(process.env["HTTP1_FUZZ_SEED"] ?? 9112);
const runs = Number(process.env["HTTP1_FUZZ_RUNS"] ?? 1_000);

/** Without what is not seen from outside once the client has closed its sending side. */
const expectedOf = (stream: string) =>
  readStream(stream).filter((outcome) => outcome !== CLOSES && outcome !== WAITS);

/** Responds only in a later turn of the event loop, so that further requests arrive meanwhile. They have to wait. */
function slowHandler(): RequestHandler {
  let running = 0;
  return {
    ...echoHandler,
    async handle(request) {
      expect(++running).toBe(1);
      await nextTurn();
      running--;
      return echoHandler.handle(request);
    },
  };
}

function completeOutcomes(sent: string): Outcome[] {
  const { outcomes, rest } = outcomesOf(sent);
  expect(rest).toBe("");
  return outcomes;
}

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
  return completeOutcomes(connection.sent);
}

let server: HttpServer;
beforeAll(() => void (server = startEchoServer()));
afterAll(() => server.close(0));

async function outcomesOverTcp(segments: readonly string[]): Promise<Outcome[]> {
  const client = new RawConnection(server.port);
  for (const segment of segments) {
    await client.write(segment);
    await nextTurn();
  }
  client.socket.end();
  return completeOutcomes(await client.rest());
}

describe.each([
  ["valid requests", validStream],
  ["requests with mutations", mutatedStream],
])("%s are read as the reference parser reads them", (_, stream) => {
  test("cut anywhere", async () => {
    const property = fc.asyncProperty(
      stream,
      cuts,
      fc.boolean(),
      fc.boolean(),
      async (text, fractions, isSlow, pauses) => {
        const handler = isSlow ? slowHandler() : echoHandler;
        const outcomes = await outcomesInProcess(segmentsOf(text, fractions), { handler, pauses });
        expect(outcomes).toEqual(expectedOf(text));
      },
    );
    await fc.assert(property, { seed, numRuns: runs });
  }, 120_000);

  test("over TCP", async () => {
    const property = fc.asyncProperty(stream, cuts, async (text, fractions) => {
      expect(await outcomesOverTcp(segmentsOf(text, fractions))).toEqual(expectedOf(text));
    });
    await fc.assert(property, { seed, numRuns: Math.ceil(runs / 10) });
  }, 120_000);
});
