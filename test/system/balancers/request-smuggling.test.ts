import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { RawConnection } from "../../../trials/harness/http-connection.ts";
import { haproxy, type LoadBalancer, nginx } from "../../../trials/harness/load-balancer.ts";
import type { HttpServer, RequestHandler } from "../../../src/http1/index.ts";
import { startWithoutHealthChecks } from "./tools.ts";
import { CLOSES, get } from "../../http1/cases/case.ts";
import { echoHandler, outcomesOf, startEchoServer } from "../../http1/echo-server.ts";
import { cuts, mutatedStream, segmentsOf, validStream } from "../../http1/generated-streams.ts";
import { readLeniently } from "../../http1/reference-parser.ts";
import { nextIteration } from "../../http1/test-connection.ts";

setDefaultTimeout(300_000);

/*
 * Streams of requests, cut and mutated at random, through a load balancer that reads them before the server does. Where
 * the two disagree on the end of a request, the server would see a request that nobody sent, and the load balancer
 * would give its response to the next client. The seed is fixed, because load balancers are lenient in more ways than
 * the reference parser knows; HTTP1_FUZZ_SEED and HTTP1_FUZZ_RUNS explore others.
 */
const seed = Number(process.env["HTTP1_FUZZ_SEED"] ?? 9112);
const runs = Number(process.env["HTTP1_FUZZ_RUNS"] ?? 100);
const MAX_CLIENTS = 50;

/** After so long without a response, a load balancer waits for the rest of a request. */
const QUIET_MS = 100;
/** A response to a request that the server has handled arrives within this time. */
const LATE_MS = 30_000;

describe.each([
  ["HAProxy", haproxy],
  ["nginx", nginx],
])("%s", (_, kind) => {
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
    balancer = await startWithoutHealthChecks(kind, [server.port, server.port, server.port]);
  });
  afterAll(async () => {
    await balancer.stop();
    await server.close(0);
  });

  /** The requests that the server handled for one client, and those that the client got a response to. */
  async function send(segments: readonly string[], expectedCount: number) {
    const address = nextAddress();
    const requests: string[] = [];
    handled.set(address, requests);
    const client = new RawConnection(balancer.port, address);
    for (const segment of segments) {
      await client.write(segment);
      await nextIteration();
    }
    const outcomes = () => outcomesOf(client.received).outcomes;
    const responses = () => outcomes().filter((outcome) => typeof outcome === "string");
    const isComplete = () => responses().length >= requests.length && outcomes().length >= expectedCount;
    const deadline = Date.now() + LATE_MS;
    let length: number;
    do {
      ({ length } = client.received);
      await Bun.sleep(QUIET_MS);
    } while (
      !client.isClosed &&
      (client.received.length > length || (!isComplete() && Date.now() < deadline))
    );
    client.socket.destroy();
    return { requests: [...requests], responses: responses(), isClosed: client.isClosed };
  }

  async function expectNoSmuggling(segments: readonly string[], expectedCount: number) {
    const { requests, responses, isClosed } = await send(segments, expectedCount);
    // A load balancer that closes a connection on which more arrives may reset it, and the last responses are lost.
    expect(responses).toEqual(isClosed ? requests.slice(0, responses.length) : requests);
    const read = readLeniently(segments.join(""));
    expect({ isRead: isSubsequence(requests, read), requests, read }).toEqual({
      isRead: true,
      requests,
      read,
    });
    const path = `/next/${addresses}`;
    const next = await send([get(path)], 1);
    expect(next).toMatchObject({ requests: [`GET ${path}`], responses: [`GET ${path}`] });
    return requests.length;
  }

  /** Many at once, because most of the time is spent waiting for a load balancer that waits itself. */
  async function forStreams(
    stream: fc.Arbitrary<string>,
    check: (segments: readonly string[], stream: string) => Promise<void>,
  ): Promise<void> {
    const streams = fc.sample(fc.tuple(stream, cuts), { seed, numRuns: runs });
    while (streams.length > 0) {
      const batch = streams.splice(0, MAX_CLIENTS);
      await Promise.all(batch.map(([text, fractions]) => check(segmentsOf(text, fractions), text)));
    }
  }

  test("valid requests, cut anywhere, get the responses to themselves, in order", async () => {
    let handledCount = 0;
    let readCount = 0;
    await forStreams(validStream, async (segments, stream) => {
      const read = readLeniently(stream).filter((outcome) => outcome !== CLOSES);
      const requests = await expectNoSmuggling(segments, read.length);
      handledCount += requests;
      readCount += read.length;
    });
    expect(handledCount).toBeGreaterThan(readCount / 2);
  });

  test("requests with mutations: none is smuggled, and none is responded to twice", async () => {
    await forStreams(mutatedStream, async (segments) => void (await expectNoSmuggling(segments, 0)));
  });
});

let addresses = 0;
/** An address in 127.0.0.0/8, a new one for each client. */
function nextAddress(): string {
  addresses++;
  return `127.1.${addresses >> 8}.${addresses & 255}`;
}

function isSubsequence(part: readonly unknown[], whole: readonly unknown[]): boolean {
  let found = 0;
  for (const item of whole) if (item === part[found]) found++;
  return found === part.length;
}
