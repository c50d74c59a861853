import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { deferredHandler, echoTarget, get, nextTurn, post, postChunked } from "./test-connection.ts";
import { respond, TestConnection } from "./test-connection.ts";

describe("pipelined requests", () => {
  const path = fc.constantFrom("/a", "/b?c=d", "/v1/pets");
  const body = fc.string({ unit: "binary-ascii", maxLength: 40 });
  const request = fc.oneof(
    path.map((p) => ({ text: get(p), response: `GET ${p} ` })),
    fc.tuple(path, body).map(([p, b]) => ({ text: post(p, b), response: `POST ${p} ${b}` })),
    fc.tuple(path, body).map(([p, b]) => ({ text: postChunked(p, b), response: `POST ${p} ${b}` })),
    fc
      .tuple(path, body)
      .map(([p, b]) => ({ text: post(p, b).replace("POST", "PUT"), response: "body ignored" })),
    path.map((p) => ({ text: `\r\n${get(p)}`, response: `GET ${p} ` })),
  );

  test("are handled one at a time and in order, whatever pieces they arrive in", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 80 }),
        fc.array(fc.nat(20_000), { maxLength: 20 }),
        fc.boolean(),
        async (requests, cuts, isSlow) => {
          let running = 0;
          const client = new TestConnection(async (request) => {
            expect(++running).toBe(1);
            const { method, path, query } = request;
            if (isSlow) await nextTurn();
            const bytes = method === "PUT" ? undefined : await request.body(1_000);
            running--;
            if (bytes === undefined) return respond("body ignored");
            const target = query === "" ? path : `${path}?${query}`;
            return respond(`${method} ${target} ${Buffer.from(bytes).toString("latin1")}`);
          });
          const all = requests.map(({ text }) => text).join("");
          const ends = [...cuts.map((cut) => cut % all.length), all.length].toSorted((a, b) => a - b);
          for (const [i, end] of ends.entries()) {
            client.receive(all.slice(i === 0 ? 0 : ends[i - 1], end));
            if (i % 3 === 0) await nextTurn();
          }
          while (client.bodies.length < requests.length) await nextTurn();
          expect(client.bodies).toEqual(requests.map(({ response }) => response));
          expect(client.events.filter((event) => event !== "pause" && event !== "resume")).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("are handled 32 at a time, and then other connections get their turn", async () => {
    const client = new TestConnection(echoTarget).receive(get("/a").repeat(100));
    expect(client.statuses.length).toBe(32);
    expect(client.events).toEqual(["pause"]);
    await nextTurn();
    expect(client.statuses.length).toBe(64);
    while (client.statuses.length < 100) await nextTurn();
    expect(client.events).toEqual(["pause", "resume"]);
  });

  test("behind a pending response are read ahead up to 64 KiB", async () => {
    const { handle, resolve } = deferredHandler();
    const client = new TestConnection(handle).receive(get("/"), "x".repeat(65_536));
    expect(client.events).toEqual([]);
    client.receive("x");
    expect(client.events).toEqual(["pause"]);
    await resolve("first");
    expect(client.bodies[0]).toBe("first");
  });

  test("after Connection: close are dropped, and the response still arrives", () => {
    const client = new TestConnection(echoTarget).receive(get("/a", "Connection: close") + get("/b"));
    expect([client.bodies, client.events]).toEqual([["GET /a "], ["shutdown"]]);
  });
});
