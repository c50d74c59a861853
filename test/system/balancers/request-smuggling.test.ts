import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { haproxy, type LoadBalancer, nginx, startLoadBalancer } from "../../../harness/load-balancer.ts";
import type { HttpServer, RequestHandler } from "../../../src/http1/index.ts";
import { CLOSES, get } from "../../http1/cases/case.ts";
import { echoHandler, startEchoServer } from "../../http1/echo-server.ts";
import { cuts, mutatedStream, segmentsOf, validStream } from "../../http1/generated-streams.ts";
import { outcomesOf, RawClient } from "../../http1/raw-client.ts";
import { readLeniently } from "../../http1/reference-parser.ts";

/*
 * Streams of requests, cut and mutated at random, through a load balancer that reads them before the server does. Where
 * the two disagree on the end of a request, the server would see a request that nobody sent, and the load balancer
 * would give its response to the next client. The seed is fixed, because load balancers are lenient in more ways than
 * the reference parser knows; HTTP1_FUZZ_SEED and HTTP1_FUZZ_RUNS explore others.
 */
const seed = Number(process.env["HTTP1_FUZZ_SEED"] ?? 9112);
const runs = Number(process.env["HTTP1_FUZZ_RUNS"] ?? 100);
console.log(`streams through load balancers: seed ${seed}, ${runs} of each kind`);

/** After so long without a response, there are no more. */
const QUIET_MS = 40;
/** A response to a request that the server has handled arrives within this time. */
const LATE_MS = 2_000;

describe.each([haproxy, nginx])("$executable", (kind) => {
  /** What the server handled, in order, by the address of the client. */
  const handled = new Map<string, string[]>();
  let server: HttpServer;
  let balancer: LoadBalancer;

  const handler: RequestHandler = {
    ...echoHandler,
    async handle(request) {
      const response = await echoHandler.handle(request);
      const client = request.headers.get("x-forwarded-for")?.split(", ").at(-1);
      const reading = /^Reading: (.*)\r\n/.exec(response.headerLines)?.[1];
      if (client !== undefined && reading !== undefined)
        handled.get(client)?.push(decodeURIComponent(reading));
      return response;
    },
  };

  beforeAll(async () => {
    server = startEchoServer(handler);
    balancer = await startLoadBalancer(kind, [server.port, server.port, server.port]);
  }, 20_000);
  afterAll(async () => {
    await balancer.stop();
    await server.close(0);
  });

  /** The requests that the server handled for one client, and those that the client got a response to. */
  async function send(segments: readonly string[], expectedCount: number) {
    const address = nextAddress();
    const requests: string[] = [];
    handled.set(address, requests);
    const client = new RawClient(balancer.port, address);
    for (const segment of segments) {
      await client.send(segment);
      await Bun.sleep(0);
    }
    const responses = () => outcomesOf(client.responses).filter((outcome) => typeof outcome === "string");
    const deadline = Date.now() + LATE_MS;
    do {
      await client.quiet(QUIET_MS);
    } while (
      responses().length < Math.max(requests.length, expectedCount) &&
      Date.now() < deadline &&
      !client.isClosed
    );
    client.destroy();
    return { requests, responses: responses(), isClosed: client.isClosed };
  }

  async function expectNoSmuggling(stream: string, fractions: readonly number[]) {
    const { requests, responses, isClosed } = await send(segmentsOf(stream, fractions), 0);
    // A load balancer that closes a connection on which more arrives may reset it, and the last responses are lost.
    expect(responses).toEqual(isClosed ? requests.slice(0, responses.length) : requests);
    const read = readLeniently(stream);
    expect({ isRead: isSubsequence(requests, read), requests, read }).toEqual({
      isRead: true,
      requests,
      read,
    });
    const next = await send([get("/next", "Connection: close")], 1);
    expect(next).toEqual({ requests: ["GET /next"], responses: ["GET /next"], isClosed: true });
    return { requests, read };
  }

  test("valid requests, cut anywhere, get the responses to themselves, in order", async () => {
    let handledCount = 0;
    let readCount = 0;
    const property = fc.asyncProperty(validStream, cuts, async (stream, fractions) => {
      const { requests, read } = await expectNoSmuggling(stream, fractions);
      handledCount += requests.length;
      readCount += read.filter((outcome) => outcome !== CLOSES).length;
    });
    await fc.assert(property, { seed, numRuns: runs });
    expect(handledCount).toBeGreaterThan(readCount / 2);
  }, 300_000);

  test("requests with mutations: none is smuggled, and none is responded to twice", async () => {
    const property = fc.asyncProperty(mutatedStream, cuts, async (stream, fractions) => {
      await expectNoSmuggling(stream, fractions);
    });
    await fc.assert(property, { seed, numRuns: runs });
  }, 300_000);
});

let addresses = 0;
/** Of 127.0.0.0/8, a new one for each client. */
function nextAddress(): string {
  addresses++;
  return `127.1.${addresses >> 8}.${addresses & 255}`;
}

function isSubsequence(part: readonly unknown[], whole: readonly unknown[]): boolean {
  let found = 0;
  for (const item of whole) if (item === part[found]) found++;
  return found === part.length;
}
