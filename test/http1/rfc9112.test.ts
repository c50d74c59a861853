import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { HttpServer } from "../../src/http1/index.ts";
import { CLOSES, get, type Outcome, WAITS } from "./cases/case.ts";
import { startEchoServer } from "./echo-server.ts";
import { outcomesOf, RawClient } from "./raw-client.ts";
import { readStream } from "./reference-parser.ts";
import { RFC_9112_CASES } from "./rfc9112-cases.ts";

let server: HttpServer;
beforeAll(() => void (server = startEchoServer()));
afterAll(() => server.close(0));

const isRejection = (outcome: Outcome | undefined) => typeof outcome === "number";

/** Everything that the server responds until it closes the connection, which it does when the client ends. */
async function allOutcomesOf(bytes: string): Promise<Outcome[]> {
  const client = new RawClient(server.port);
  await client.send(bytes);
  client.endSending();
  await client.closed;
  return outcomesOf(client.responses);
}

describe.each(
  Map.groupBy(RFC_9112_CASES, ({ section }) => section)
    .entries()
    .toArray(),
)("%s", (_, cases) => {
  test.each(cases.map((each) => [each.name, each] as const))("%s", async (_, { bytes, outcomes }) => {
    const client = new RawClient(server.port);
    await client.send(bytes);
    const last = outcomes.at(-1);
    const expected = outcomes.filter((outcome) => outcome !== CLOSES && outcome !== WAITS);
    await client.receive(expected.length);
    expect(outcomesOf(client.responses)).toEqual(expected);
    if (last === WAITS) {
      client.endSending();
      await client.closed;
    } else if (last === CLOSES || isRejection(last)) {
      expect(client.responses.at(-1)?.headers.get("connection")).toBe("close");
      await client.closed;
    } else {
      await client.send(get("/next"));
      await client.receive(expected.length + 1);
      expected.push("GET /next");
    }
    expect(outcomesOf(client.responses)).toEqual(expected);
    expect(client.incomplete).toBe("");
    client.destroy();
  });
});

describe("requests that follow what is not valid are never handled", () => {
  const rejections = RFC_9112_CASES.filter(({ outcomes }) => isRejection(outcomes.at(-1)));
  test.each(rejections.map((each) => [`${each.section}: ${each.name}`, each] as const))(
    "%s",
    async (_, each) => {
      expect(await allOutcomesOf(each.bytes + get("/smuggled"))).toEqual([...each.outcomes]);
    },
  );
});

test("the reference parser reads every case as the table says", () => {
  const differences = RFC_9112_CASES.filter(
    ({ bytes, outcomes }) => !Bun.deepEquals(readStream(bytes), outcomes),
  ).map(({ section, name, bytes, outcomes }) => ({ section, name, outcomes, read: readStream(bytes) }));
  expect(differences).toEqual([]);
});

test("every section has cases that are accepted, and nearly every one cases that are rejected", () => {
  expect(RFC_9112_CASES.length).toBeGreaterThanOrEqual(400);
  expect(RFC_9112_CASES.filter(({ outcomes }) => isRejection(outcomes.at(-1))).length).toBeGreaterThanOrEqual(
    250,
  );
});
