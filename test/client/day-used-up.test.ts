import { expect, test } from "bun:test";
import * as client from "../../src/client/index.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { createKey, startPetstore } from "../../trials/harness/petstore.ts";
import { storePolicy } from "../../trials/harness/policy.ts";
import { bearer } from "../bearer.ts";
import { rejection } from "./scripted.ts";

test("with the day used up every call is a RateLimitError at once, and so it is during a ban", async () => {
  const storage = ["--data", temporaryDirectory("day-used-up")];
  await storePolicy(storage, { ban: { strikes: 1, graceMs: 0 } });
  const server = await startPetstore([...storage, "--port", "0", "--admin-address", "off"]);
  const { key } = await createKey(storage, "enterprise", "--per-minute", "9", "--per-day", "2");
  let sent = 0;
  const petstore = new client.Petstore({ key, baseUrl: server.url, onRequest: () => void sent++ });
  const startedAt = performance.now();
  for (let call = 0; call < 2; call++) await petstore.pets.listPage();
  for (let call = 0; call < 3; call++) {
    const error = await rejection(petstore.pets.create({ name: "Rex", categoryId: 1 }));
    expect(error).toBeInstanceOf(client.RateLimitError);
    expect(error).toMatchObject({ code: "rate_limited", status: 429 });
    expect(Object(error).retryAfter).toBeWithin(86_000, 86_402);
    expect(Object(error).idempotencyKey).toMatch(/^\w{32}$/);
  }
  expect(sent).toBe(2);
  // Somebody else with the key does not wait.
  const headers = bearer(key);
  let body = "";
  while (!body.includes("key_banned")) body = await (await fetch(`${server.url}/pets`, { headers })).text();
  const another = new client.Petstore({ key, baseUrl: server.url });
  for (let call = 0; call < 2; call++) {
    const error = await rejection(another.pets.listPage());
    expect(error).toBeInstanceOf(client.RateLimitError);
    expect(error).toMatchObject({ code: "key_banned", status: 429 });
    expect(Object(error).retryAfter).toBeWithin(86_000, 86_402);
  }
  // By default a call may take two minutes.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  await server.stop();
}, 60_000);
