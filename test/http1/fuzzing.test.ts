import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { RequestHandler } from "../../src/http1/index.ts";
import { CLOSES, type Outcome, WAITS } from "./cases/case.ts";
import { echoHandler, outcomesOf } from "./echo-server.ts";
import { cuts, mutatedStream, segmentsOf, validStream } from "./generated-streams.ts";
import { readStream } from "./reference-parser.ts";
import { nextIteration, TestConnection } from "./test-connection.ts";

/*
 * Streams of requests, cut into segments at random, against the reference parser. A failure prints the smallest stream.
 * HTTP1_FUZZ_SEED and HTTP1_FUZZ_RUNS explore others.
 */
const seed = Number(process.env["HTTP1_FUZZ_SEED"] ?? 9112);
const runs = Number(process.env["HTTP1_FUZZ_RUNS"] ?? 1_000);

/** The outcomes without those that are not seen from outside once the client has closed its sending side. */
const expectedOf = (stream: string) =>
  readStream(stream).filter((outcome) => outcome !== CLOSES && outcome !== WAITS);

/** Responds in a later iteration of the event loop, so that further requests arrive meanwhile. They have to wait. */
function slowHandler(): RequestHandler {
  let running = 0;
  return {
    ...echoHandler,
    async handle(request) {
      expect(++running).toBe(1);
      await nextIteration();
      running--;
      return echoHandler.handle(request);
    },
  };
}

async function outcomesWhen(
  segments: readonly string[],
  { handler, pauses }: { handler: RequestHandler; pauses: boolean },
): Promise<Outcome[]> {
  const connection = new TestConnection(handler.handle);
  connection.handler = handler;
  for (const segment of segments) {
    connection.receive(segment);
    if (pauses) await nextIteration();
  }
  connection.connection.onEnd();
  while (!connection.events.some((event) => event === "end" || event === "shutdown")) await nextIteration();
  const { outcomes, rest } = outcomesOf(connection.sent);
  expect(rest).toBe("");
  return outcomes;
}

test.each([
  ["valid requests", validStream],
  ["requests with mutations", mutatedStream],
])(
  "%s, cut anywhere, are read as the reference parser reads them",
  async (_, stream) => {
    const property = fc.asyncProperty(
      stream,
      cuts,
      fc.boolean(),
      fc.boolean(),
      async (text, fractions, isSlow, pauses) => {
        const handler = isSlow ? slowHandler() : echoHandler;
        const outcomes = await outcomesWhen(segmentsOf(text, fractions), { handler, pauses });
        expect(outcomes).toEqual(expectedOf(text));
      },
    );
    await fc.assert(property, { seed, numRuns: runs });
  },
  120_000,
);
