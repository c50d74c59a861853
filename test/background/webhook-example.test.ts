import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { sendMessage } from "../../src/background/webhook-request.ts";
import { webhookSecrets } from "../../src/config/value-types.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { startReceiver, WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";

const page = readFileSync(resolve(import.meta.dir, "../../docs/monitoring.md"), "utf8");
const [, example = ""] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];

test("the example of the documentation accepts what a server sends, and nothing that is changed or old", async () => {
  const file = join(temporaryDirectory("webhook-example"), "verify.ts");
  writeFileSync(file, example);
  const { isGenuine } = await import(file);
  await using receiver = startReceiver();
  const target = { url: receiver.url, secrets: webhookSecrets.parse(WEBHOOK_SECRET) ?? [] };
  const message = { id: "a_1_2", body: '{"type":"webhook.test","timestamp":"","data":{}}' };
  const { signal } = new AbortController();
  const now = Date.now();
  for (const at of [now, now - 301_000])
    await sendMessage(target, message, { now: at, signal, timeoutMs: 10_000 });
  const [recent, old] = receiver.received.map(({ headers }) => new Headers(headers));
  const { body } = message;
  expect(isGenuine(recent, body, WEBHOOK_SECRET)).toBeTrue();
  expect(isGenuine(old, body, WEBHOOK_SECRET)).toBeFalse();
  expect(isGenuine(recent, `${body} `, WEBHOOK_SECRET)).toBeFalse();
  expect(isGenuine(recent, body, `whsec_${Buffer.alloc(32).toString("base64")}`)).toBeFalse();
  expect(isGenuine(new Headers(), body, WEBHOOK_SECRET)).toBeFalse();
  recent?.set("webhook-signature", "é".repeat(recent.get("webhook-signature")?.length ?? 0));
  expect(isGenuine(recent, body, WEBHOOK_SECRET)).toBeFalse();
});
