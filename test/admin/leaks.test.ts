import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
  const bearerOf = (secret: string) => ({ Authorization: `Bearer ${secret}` });
  const bearer = bearerOf(TOKEN);

  const signedIn = await send("/api/session", {}, { token: TOKEN });
  const [, session = ""] = /^[^=]+=([^;]+)/.exec(signedIn.headers.get("set-cookie") ?? "") ?? [];
  expect(session).toMatch(/^[\w-]{43}$/);
  const { secret: pageSecret } = Object(await signedIn.json());
  const ann = Object(await (await send("/api/operators", bearer, { name: "ann", role: "viewer" })).json());
  const next = Object(await (await send("/api/operators/1/rotate", bearer, {})).json());
  const [, code = ""] = /code=(.+)\n/.exec((await runPetstore("admin-url", "--data", data)).out) ?? [];
  expect(code).toMatch(/^[\da-f]{40}$/);
  const created = Object(await (await send("/api/keys", bearer, { name: "a", plan: "free" })).json());
  const rotated = Object(await (await send("/api/keys/2/rotate", bearer, {})).json());
  const operators = [ann.token, next.token, pageSecret, code];
  const secrets = [TOKEN, MISTYPED, session, ...operators, created.secret, rotated.secret];
  const responses = await Promise.all([
    send("/api/session", {}, { token: MISTYPED }),
    send("/api/keys", bearerOf(MISTYPED)),
    send("/api/keys", { Authorization: `Basic ${MISTYPED}` }),
    send(`/?token=${TOKEN}`, {}),
    send(`/?code=${code}`, {}),
    send(`/api/session?code=${code}`, {}),
    send("/api/session", {}, { code: `${code}x` }),
    send("/api/session", {}, { code, token: TOKEN }),
    send("/api/keys", bearerOf(ann.token)),
    send("/api/keys", { ...bearerOf(next.token), Cookie: session, "Petstore-Session": pageSecret }),
    send("/api/operators", bearer),
    send(`/api/keys?token=${TOKEN}`, bearer),
    send(`/api/keys/${TOKEN}`, bearer),
    send(`/nothing/${TOKEN}`, {}),
    send("/api/keys/find", bearer, { secret: created.secret }),
    send("/api/keys/find", bearer, { secret: TOKEN }),
    send("/api/keys", bearer, { name: 1, secret: created.secret }),
    send("/api/settings", bearer),
    send("/api/audit", bearer),
    send("/api/server", bearer),
    send("/metrics", bearer),
    send("/readyz?verbose", {}),
    fetch(`${server.url}/pets?cursor=${created.secret}`, { headers: bearerOf(rotated.secret) }),
    fetch(`${server.url}/pets`, { headers: bearer }),
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
