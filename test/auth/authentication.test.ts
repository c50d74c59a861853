import { expect, test } from "bun:test";
import { startApp } from "../../src/app.ts";
import { generateSecret, toNewSecret } from "../../src/domain/secrets.ts";
import { createLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { bearer } from "../bearer.ts";
import { BY } from "../key-store-arguments.ts";
import { configIn } from "../service.ts";

test("the hundredth request without a valid key is an event with its address; those with one are not counted", async () => {
  const events: string[] = [];
  const log = createLog({ format: "json", write: (line) => void events.push(line) });
  const app = await startApp(configIn(temporaryDirectory("authentication")), { log });
  const send = (headers: Record<string, string>) => fetch(`${app.url}/pets`, { headers });
  const secret = generateSecret("production");
  await app.keys.createKey({ name: "test", plan: "pro", createdAt: 0 }, toNewSecret(secret), BY);
  for (let i = 0; i < 99; i++) await send({});
  for (let i = 0; i < 5; i++) expect((await send(bearer(secret))).status).toBe(200);
  const floods = () => events.filter((line) => line.includes("authentication.flood"));
  expect(floods()).toEqual([]);
  await send({});
  expect(floods().map((line) => JSON.parse(line))).toMatchObject([{ requests: 100, address: "127.0.0.1" }]);
  await app.close();
});
