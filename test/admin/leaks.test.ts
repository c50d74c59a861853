import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bearer } from "../bearer.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { runPetstore, startPetstore } from "../../trials/harness/petstore.ts";

const TOKEN = "the-token-of-the-operators-which-is-long-enough";
const MISTYPED = `${TOKEN.slice(0, -1)}x`;

test("neither the token, a mistyped one, a session nor the secret of a key is in a log, a file, a setting or a metric", async () => {
  const data = temporaryDirectory("leaks");
  const tokenFile = join(temporaryDirectory("token"), "token");
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const addresses = ["--port", "0", "--admin-address", "127.0.0.1:0"];
  const files = ["--data", data, "--admin-token-file", tokenFile, "--access-log", join(data, "access.log")];
  const server = await startPetstore([...addresses, ...files]);
  const send = (path: string, headers: Record<string, string>, body?: unknown) =>
    fetch(server.adminUrl + path, {
      headers: { ...headers, "Content-Type": "application/json" },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
  const asAdmin = bearer(TOKEN);

  const signedIn = await send("/api/session", {}, { token: TOKEN });
  const [, session = ""] = /^[^=]+=([^;]+)/.exec(signedIn.headers.get("set-cookie") ?? "") ?? [];
  expect(session).toMatch(/^[\w-]{43}$/);
  const { secret: pageSecret } = Object(await signedIn.json());
  const ann = Object(await (await send("/api/operators", asAdmin, { name: "ann", role: "viewer" })).json());
  const next = Object(await (await send("/api/operators/1/rotate", asAdmin, {})).json());
  const [, code = ""] = /code=(.+)\n/.exec((await runPetstore("admin-url", "--data", data)).out) ?? [];
  expect(code).toMatch(/^[\da-f]{40}$/);
  const created = Object(await (await send("/api/keys", asAdmin, { name: "a", plan: "free" })).json());
  const rotated = Object(await (await send("/api/keys/2/rotate", asAdmin, {})).json());
  const operators = [ann.token, next.token, pageSecret, code];
  const secrets = [TOKEN, MISTYPED, session, ...operators, created.secret, rotated.secret];
  const responses = await Promise.all([
    send("/api/session", {}, { token: MISTYPED }),
    send("/api/keys", bearer(MISTYPED)),
    send("/api/keys", { Authorization: `Basic ${MISTYPED}` }),
    send(`/?token=${TOKEN}`, {}),
    send(`/?code=${code}`, {}),
    send(`/api/session?code=${code}`, {}),
    send("/api/session", {}, { code: `${code}x` }),
    send("/api/session", {}, { code, token: TOKEN }),
    send("/api/keys", bearer(ann.token)),
    send("/api/keys", { ...bearer(next.token), Cookie: session, "Petstore-Session": pageSecret }),
    send("/api/operators", asAdmin),
    send(`/api/keys?token=${TOKEN}`, asAdmin),
    send(`/api/keys/${TOKEN}`, asAdmin),
    send(`/nothing/${TOKEN}`, {}),
    send("/api/keys/find", asAdmin, { secret: created.secret }),
    send("/api/keys/find", asAdmin, { secret: TOKEN }),
    send("/api/keys", asAdmin, { name: 1, secret: created.secret }),
    send("/api/settings", asAdmin),
    send("/api/audit", asAdmin),
    send("/api/server", asAdmin),
    send("/metrics", asAdmin),
    send("/readyz?verbose", {}),
    fetch(`${server.url}/pets?cursor=${created.secret}`, { headers: bearer(rotated.secret) }),
    fetch(`${server.url}/pets`, { headers: asAdmin }),
  ]);
  const texts = await Promise.all(
    responses.map(async (response) => `${response.url}: ${await response.text()}`),
  );
  await server.stop();

  const places = [
    ...server.log.map(({ text }) => `log: ${text}`),
    ...texts.map((text) => text.replace(/^\S+/, "")),
    ...readdirSync(data, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => `${name}: ${readFileSync(join(parentPath, name), "latin1")}`),
  ];
  expect(places.length).toBeGreaterThan(25);
  expect(places.some((place) => place.startsWith("access.log: {"))).toBeTrue();
  const leaks = places.filter((place) => secrets.some((secret) => place.includes(secret)));
  expect(leaks.map((place) => place.slice(0, 200))).toEqual([]);
}, 60_000);
