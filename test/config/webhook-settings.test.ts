import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SETTINGS } from "../../src/config/options.ts";
import { DEFAULT_WEBHOOK_EVENTS, deliveredActions, MAX_WAITING_MS } from "../../src/domain/webhooks.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";
import { cleanUpAfterAll, InProcessCli, wrongUsage } from "../cli/cli.ts";
import { parseConfig, parseValues, usageError, shownWith } from "./parsing.ts";

cleanUpAfterAll();

const URL_FLAG = { "webhook-url": ["https://hooks.example.com/petstore?team=a"] };
const HOW = `printf 'whsec_%s\\n' "$(openssl rand -base64 32)"`;

const fileOf = (text: string) => {
  const path = join(temporaryDirectory("webhook-secret"), "secret");
  writeFileSync(path, text);
  return path;
};

test("the secret is in a file or a variable, as whsec_ and base64; the settings show nothing of it", () => {
  const flags = { ...URL_FLAG, "webhook-secret-file": [fileOf(`${WEBHOOK_SECRET}\n`)] };
  const { webhook } = parseConfig(flags);
  expect(webhook?.url).toBe("https://hooks.example.com/petstore?team=a");
  expect(Buffer.from(webhook?.secrets[0] ?? []).toString("base64")).toBe(WEBHOOK_SECRET.slice(6));
  expect(webhook?.events).toEqual(DEFAULT_WEBHOOK_EVENTS);
  const { secretFile, ...rest } = webhook ?? {};
  expect(secretFile).toBe(flags["webhook-secret-file"][0]);
  expect(parseConfig(URL_FLAG, { PETSTORE_WEBHOOK_SECRET: WEBHOOK_SECRET }).webhook).toMatchObject(rest);
  expect(parseConfig().webhook).toBeUndefined();
  const shown = shownWith(flags);
  expect(shown.find(({ name }) => name === "webhook-secret")?.value).toBe("…");
  expect(JSON.stringify(shown)).not.toContain(WEBHOOK_SECRET.slice(6, 20));
});

const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes).toString("base64")}`;

test.each([24, 64])("a secret of %i bytes is accepted", (bytes) => {
  const { webhook } = parseConfig(URL_FLAG, { PETSTORE_WEBHOOK_SECRET: secretOf(bytes) });
  expect(webhook?.secrets[0]).toHaveLength(bytes);
});

test("a server signs with two secrets at most, while a receiver changes from one to the other", () => {
  const secrets = (...bytes: number[]) => ({ PETSTORE_WEBHOOK_SECRET: bytes.map(secretOf).join(",") });
  const { webhook } = parseConfig(URL_FLAG, secrets(24, 32));
  expect(webhook?.secrets.map(({ length }) => length)).toEqual([24, 32]);
  expect(usageError(URL_FLAG, secrets(24, 32, 64))).toContain("it must be one or two secrets");
});

test.each(["whsec_", secretOf(23), secretOf(65), WEBHOOK_SECRET.slice(6), "whsec_****"])(
  "the secret %j is rejected with how to make one, and not repeated",
  (text) => {
    const path = fileOf(text);
    const flags = { ...URL_FLAG, "webhook-secret-file": [path] };
    expect(usageError(flags)).toBe(
      `--webhook-secret-file is not valid; it must be one or two secrets, each whsec_ and 24 to 64 bytes in base64; make one with: ${HOW}`,
    );
  },
);

test.each(["http://10.0.0.7:9000/hook", "http://localhost:9000", "https://hooks.example.com/a/b?c=d"])(
  "the URL %s is accepted: the operator names it, also if it is private",
  (url) => expect(parseValues({ "webhook-url": [url] })["webhook-url"]).toBe(url),
);

test("operators see the host of the URL: path and query may be a token, and their hash tells two apart", () => {
  const shown = (url: string) =>
    shownWith({ "webhook-url": [url] }).find(({ name }) => name === "webhook-url")?.value;
  expect(shown("https://hooks.example.com/T0/B0/xyzzy")).toBe(
    "https://hooks.example.com/… (SHA-256 47b3ad92)",
  );
  expect(shown("https://hooks.example.com?token=xyzzy")).toStartWith("https://hooks.example.com/… (SHA-256 ");
  for (const url of ["http://10.0.0.7:9000", "http://10.0.0.7:9000/"]) expect(shown(url)).toBe(url);
});

test.each([
  "hooks.example.com",
  "ftp://a/b",
  "https://user:pw@hooks.example.com/",
  "https://a/#b",
  "https://a b/",
])("the URL %s is rejected, and not repeated", (url) =>
  expect(usageError({ "webhook-url": [url] })).toStartWith(
    "--webhook-url is not valid; it must be an http:// or https:// URL",
  ),
);

test("--webhook-events takes actions, all of a kind, and all; another name is an error with a suggestion", () => {
  const actions = (...events: string[]) =>
    deliveredActions(parseValues({ "webhook-events": events })["webhook-events"]);
  expect(actions("key.banned,operator.*")).toEqual(
    new Set(["key.banned", "operator.created", "operator.updated", "operator.rotated", "operator.revoked"]),
  );
  expect(actions("key.banned", "pet.deleted")).toEqual(new Set(["key.banned", "pet.deleted"]));
  expect(actions("key.banned,*")).toBeUndefined();
  expect(usageError({ "webhook-events": ["key.baned"] })).toBe(
    '--webhook-events is "key.baned"; it must be an action of the audit trail such as key.banned, all of a kind such as operator.*, or *, or several separated by commas (did you mean key.banned?)',
  );
  expect(usageError({ "webhook-events": ["operators.*"] })).toContain("did you mean operator.*?");
});

test("the default events are those that somebody should look at", () => {
  const actions = deliveredActions(DEFAULT_WEBHOOK_EVENTS);
  expect([...(actions ?? [])].filter((action) => !action.startsWith("operator."))).toEqual([
    "key.banned",
    "key.expires-soon",
    "data.restored",
    "plan.updated",
    "ban-rules.updated",
  ]);
});

test("no retention of the audit trail deletes an entry before its delivery has failed for three days", () => {
  const [, days] = /^(\d+)d to/.exec(SETTINGS["audit-retention"].type.range ?? "") ?? [];
  expect(MAX_WAITING_MS).toBe(3 * 86_400_000);
  expect(Number(days) * 86_400_000).toBeGreaterThan(MAX_WAITING_MS);
});

test.each([`--webhook-url http://127.0.0.1:1/`, `--webhook-secret-file ${fileOf(WEBHOOK_SECRET)}`])(
  "serve %s alone does not start",
  async (flags) => {
    const message = `--webhook-url and --webhook-secret-file belong together; one of them is missing. The file has one or two secrets, each whsec_ and 24 to 64 bytes in base64; make one with: ${HOW}`;
    expect(await new InProcessCli().run(`serve --port 0 ${flags}`)).toEqual(wrongUsage(message));
  },
);
