import { describe, expect, test } from "bun:test";
import { BODY_LENGTH } from "./cases/body-length.ts";
import { type Case, CLOSES, get, type Outcome, WAITS } from "./cases/case.ts";
import { CHUNKS } from "./cases/chunks.ts";
import { CONNECTION } from "./cases/connection.ts";
import { FIELDS } from "./cases/fields.ts";
import { HOST } from "./cases/host.ts";
import { REQUEST_LINE } from "./cases/request-line.ts";
import { SMUGGLING } from "./cases/smuggling.ts";
import { TARGET } from "./cases/target.ts";
import { echoHandler, outcomesOf } from "./echo-server.ts";
import { readStream } from "./reference-parser.ts";
import { nextIteration, TestConnection } from "./test-connection.ts";

/** The grammar of HTTP/1.1 requests (RFC 9112, and RFC 9110 where it refers to it) as cases, valid and not. */
const RFC_9112_CASES: readonly Case[] = [
  ...REQUEST_LINE,
  ...TARGET,
  ...HOST,
  ...FIELDS,
  ...BODY_LENGTH,
  ...CHUNKS,
  ...CONNECTION,
  ...SMUGGLING,
];

/** Byte by byte, longer ones would take most of the time of these tests. */
const MAX_BYTES_ONE_BY_ONE = 20_000;

/** What the client gets, and whether the connection is still open. */
async function responsesTo(segments: Iterable<string>) {
  const client = new TestConnection(echoHandler.handle);
  client.handler = echoHandler;
  for (const segment of segments) client.receive(segment);
  for (let turn = 0; turn < 3; turn++) await nextIteration();
  const isOpen = !client.events.some((event) => event === "end" || event === "shutdown");
  return { ...outcomesOf(client.sent), isOpen };
}

/** A request behind the case is handled if the connection stays open, and never if it closes. */
function expectedOf(outcomes: readonly Outcome[]) {
  const last = outcomes.at(-1);
  const isOpen = last !== CLOSES && typeof last !== "number";
  const seen = outcomes.filter((outcome) => outcome !== CLOSES && outcome !== WAITS);
  if (isOpen && last !== WAITS) seen.push("GET /next");
  return { outcomes: seen, rest: "", isOpen, saysClose: !isOpen };
}

describe.each(
  Map.groupBy(RFC_9112_CASES, ({ section }) => section)
    .entries()
    .toArray(),
)("%s", (_, cases) => {
  test.each(cases.map((each) => [each.name, each] as const))("%s", async (_, { bytes, outcomes }) => {
    const stream = outcomes.at(-1) === WAITS ? bytes : bytes + get("/next");
    const expected = expectedOf(outcomes);
    expect(await responsesTo([stream])).toEqual(expected);
    if (bytes.length < MAX_BYTES_ONE_BY_ONE) expect(await responsesTo(stream)).toEqual(expected);
    expect(readStream(bytes)).toEqual([...outcomes]);
  });
});
