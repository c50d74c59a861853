import type { Setting } from "../../../src/operator/operations.ts";
import { toNewToken } from "../../../src/operator/sign-in/token.ts";
import { bearer } from "../../bearer.ts";
import { addPetsAndOrders } from "../fixtures.ts";
import { contentLength, JSON_TYPE, message, utf8 } from "../message.ts";
import type { Action, Scenario } from "../play.ts";
import type { Server } from "../server.ts";
import { until } from "../../timing.ts";

const TOKEN = "recorded-token-of-the-operators";
const HOST = "Host: localhost";
const SIGNED_IN = `Authorization: Bearer ${TOKEN}`;

const bare = (line: string, ...headers: string[]) => message(`${line} HTTP/1.1`, headers);
const send = (line: string, ...headers: string[]) => bare(line, HOST, SIGNED_IN, ...headers);
const get = (path: string, ...headers: string[]) => send(`GET /api${path}`, ...headers);
/** A text is sent as it stands, anything else as JSON. */
const write = (line: string, body: unknown, ...headers: string[]) => {
  const bytes = utf8(typeof body === "string" ? body : JSON.stringify(body));
  return message(`${line} HTTP/1.1`, [HOST, SIGNED_IN, JSON_TYPE, ...headers, contentLength(bytes)], bytes);
};
const post = write.bind(undefined, "POST /api/keys");
const signIn = (body: object) =>
  write("POST /api/session", body).replace(`${SIGNED_IN}\r\n`, "Origin: http://localhost\r\n");

/** Operators whose tokens are known here, by their names. */
const OPERATORS = { ann: "viewer", bob: "admin", eve: "support" } as const;
const tokenOf = (name: string) => `recorded-token-of-the-operator-${name}`;
const as = (name: string, line: string) => bare(line, HOST, `Authorization: Bearer ${tokenOf(name)}`);

/** 58 bytes with the secret. */
const FIND = '{"secret":"{{main}}"}';

const SETTING: Setting = {
  name: "drain-delay",
  variable: "PETSTORE_DRAIN_DELAY",
  value: "2s",
  default: "0",
  source: "flag",
  help: "Time to keep serving after a stop signal.",
};

/** Key 3 is banned, key 4 is revoked, and keys 1 and 2 have used the API before. */
async function prepare(server: Server): Promise<void> {
  const { adapters, clock, by } = server;
  await addPetsAndOrders(server);
  await adapters.keys.updateKey(server.idOfKey("revoked"), { revokedAt: by.at }, by);
  const banned = { kind: "key", id: server.idOfKey("banned") } as const;
  for (let i = 0; i < 4; i++) {
    await adapters.rateLimiter.decide(banned, { perMinute: 1, perDay: 50 });
    clock.advance(500);
  }
  const isRecorded = async () =>
    (await adapters.audit.listAudit({ action: "key.banned", limit: 1 })).items.length > 0;
  await until(isRecorded, 10_000);
  const counts = { admitted: 30, limited: 2, banned: 1, errors: 3, lastUsedAt: by.at - 7_200_000 };
  const byOperation = [{ operation: "getPet", admitted: 20, errors: 3 }] as const;
  const keys = [
    { ...counts, keyId: server.idOfKey("main"), byOperation },
    { ...counts, keyId: server.idOfKey("lister"), admitted: 60, byOperation },
  ];
  for (const [name, role] of Object.entries(OPERATORS))
    await adapters.operators.createOperator({ name, role }, toNewToken(tokenOf(name)), by);
  await adapters.usageHistory.addUsage({ writer: "recorded", sequence: 1, hour: by.at - 7_200_000, keys });
}

const lockOut: Action = async ({ adminPort }) => {
  for (let i = 0; i < 20; i++) {
    const headers = { Authorization: `Bearer wrong-${i}` };
    await fetch(`http://127.0.0.1:${adminPort}/api/keys`, { headers });
  }
};

/** Revokes as another server does: this one sees it when its clock goes on. */
const revokeBob: Action = ({ adapters, by }) => adapters.operators.revokeOperator(2, by);

const admitPerson: Action = ({ adapters, by }) =>
  adapters.operators.admitOperator(
    {
      name: "pat@example.com",
      role: "viewer",
      subject: "https://login.example pat",
      expiresAt: by.at + 60_000,
    },
    toNewToken(tokenOf("pat")),
    by,
  );

const fillOperators: Action = async ({ adapters, by }) => {
  for (let n = 0; n < 200; n++)
    await adapters.operators.createOperator({ name: `n${n}`, role: "metrics" }, toNewToken(`n${n}`), by);
};

/** Uses up the rate of an operator. */
const sendMany: Action = async ({ adminPort }) => {
  const headers = bearer(tokenOf("ann"));
  for (let n = 0; n < 200; n++) await fetch(`http://127.0.0.1:${adminPort}/api/server`, { headers });
};

/** The API and the other paths of the listener for operators. What is listed comes before what changes it. */
export const admin: Scenario = {
  listener: "admin",
  keys: {
    main: { owner: "ann@example.com", labels: ["mobile"], notes: "The app" },
    lister: { plan: "enterprise", limits: { perMinute: 5, perDay: 50 }, access: "read" },
    banned: { plan: "enterprise", limits: { perMinute: 1, perDay: 50 } },
    revoked: { plan: "free", expiresAt: Date.UTC(2027, 0, 1) },
    changed: { plan: "free" },
    rolled: { plan: "pro" },
    ended: { plan: "pro" },
  },
  policy: { ban: { strikes: 2, graceMs: 0, lengthMs: 90_000, maxLengthMs: 180_000 } },
  config: {
    admin: {
      host: "127.0.0.1",
      port: 0,
      isDefault: false,
      hostnames: ["petstore.internal"],
      token: TOKEN,
      tokenFile: undefined,
      metricsTokenFile: undefined,
      areMetricsPublic: false,
      provider: undefined,
    },
  },
  shownSettings: [SETTING],
  prepare,
  steps: [
    ["admin, listAudit 200", get("/audit?limit=2")],
    ["admin, listAudit 200: of one key", get("/audit?target=key:4&action=key.revoked")],
    ["admin, listKeys 200: a page of two", get("/keys?limit=2&sort=name")],
    ["admin, listKeys 200: revoked", get("/keys?state=revoked")],
    ["admin, listKeys 400: every parameter", get("/keys?limit=0&plan=gold&sort=x")],
    ["admin, getKey 200: with every field", get("/keys/1")],
    ["admin, getKey 200: banned", get("/keys/3")],
    ["admin, getKey 404", get("/keys/999")],
    ["admin, listBans 200", get("/bans")],
    ["admin, getKeyUsage 200", get("/keys/1/usage?by=day")],
    ["admin, getUsage 200", get("/usage")],
    ["admin, listPets 200: a page of two", get("/pets?limit=2")],
    ["admin, getPet 200", get("/pets/1")],
    ["admin, getPet 404", get("/pets/999")],
    ["admin, listOrders 200: a page of two", get("/orders?limit=2")],
    ["admin, getOrder 200", get("/orders/1")],
    ["admin, getOrder 404: malformed", get("/orders/01")],
    ["admin, getServer 200", get("/server")],
    ["admin, getSettings 200", get("/settings")],
    ["admin, getWebhook 200: none", get("/webhook")],
    ["admin, testWebhook 409", send("POST /api/webhook/test")],
    ["admin, getOverview 400", get("/overview?range=2h")],

    [
      "admin, createKey 201",
      post({ name: "Partner", plan: "enterprise", limits: { perMinute: 7, perDay: 70 } }),
    ],
    ["admin, createKey 400: every field", post({ name: "", plan: "gold", access: 1 })],
    ["admin, createKey 400: not JSON", post("{")],
    ["admin, createKey 413", post(" ".repeat(65_537))],
    ["admin, createKey 415", send("POST /api/keys", "Content-Type: text/plain", "Content-Length: 2") + "{}"],
    ["admin, findKey 200", send("POST /api/keys/find", JSON_TYPE, "Content-Length: 58") + FIND],
    ["admin, updateKey 200", write("PATCH /api/keys/5", { name: "Renamed", plan: "pro", owner: null })],
    ["admin, updateKey 409: revoked", write("PATCH /api/keys/4", { plan: "pro" })],
    ["admin, rotateKey 200", write("POST /api/keys/6/rotate", { overlapSeconds: 3_600 })],
    ["admin, revokeKey 200", send("POST /api/keys/7/revoke")],
    ["admin, unbanKey 200", send("POST /api/keys/3/unban")],
    ["admin, updatePet 200", write("PATCH /api/pets/2", { name: "Mila", status: "sold" })],
    ["admin, updatePet 409: ordered", write("PATCH /api/pets/5", { status: "sold" })],
    ["admin, deletePet 204", send("DELETE /api/pets/9")],
    ["admin, deletePet 409: it has orders", send("DELETE /api/pets/5")],
    ["admin, updateOrder 200", write("PATCH /api/orders/1", { status: "completed" })],
    ["admin, updateOrder 409: closed", write("PATCH /api/orders/2", { status: "cancelled" })],

    ["admin, listOperators 200", get("/operators")],
    ["admin, createOperator 201", write("POST /api/operators", { name: "dan", role: "support" })],
    ["admin, createOperator 400", write("POST /api/operators", { name: "token", role: "owner" })],
    ["admin, createOperator 409: exists", write("POST /api/operators", { name: "ann", role: "admin" })],
    ["admin, createOperator 403: a viewer", as("ann", "POST /api/operators")],
    ["admin, revokeOperator 409: oneself", as("bob", "POST /api/operators/2/revoke")],
    revokeBob,
    ["admin, revokeOperator 409: the last admin", as("bob", "POST /api/operators/4/revoke")],
    admitPerson,
    ["admin, updateOperator 409: of a provider", write("PATCH /api/operators/6", { role: "admin" })],
    ["admin, revokeOperator 404", send("POST /api/operators/99/revoke")],
    ["admin, revokeOperator 200", send("POST /api/operators/3/revoke")],
    ["admin, rotateOperator 409: revoked", send("POST /api/operators/3/rotate")],
    [
      "admin, rotateOperator 200: oneself",
      write("POST /api/operators/1/rotate", { overlapSeconds: 600 }).replace(TOKEN, tokenOf("ann")),
    ],
    ["admin, rotateOperator 403: a replaced token", as("ann", "POST /api/operators/1/rotate")],
    sendMany,
    ["admin, getServer 429: too many requests", as("ann", "GET /api/server")],
    fillOperators,
    ["admin, createOperator 409: too many", write("POST /api/operators", { name: "zoe", role: "admin" })],

    ["admin, createSession 200", signIn({ token: TOKEN })],
    ["admin, createSession 401", signIn({ token: "wrong" })],
    ["admin, createSession 401: a wrong code", signIn({ code: "wrong" })],
    ["admin, beginSignIn 409: no provider", bare("POST /api/session/provider", HOST, "Content-Length: 0")],
    ["admin, getSession 200: not signed in", bare("GET /api/session", HOST)],
    ["admin, deleteSession 204", send("DELETE /api/session")],
    ["admin 401: not signed in", bare("GET /api/keys", HOST)],
    ["admin 401: a wrong token", bare("GET /api/keys", HOST, "Authorization: Bearer wrong")],
    ["admin 403: another host", bare("GET /api/keys", "Host: other.example", SIGNED_IN)],
    ["admin 403: another origin", get("/keys", "Origin: https://other.example")],
    ["admin 404", get("/nothing")],
    ["admin 404: a page of the console", bare("GET /nothing", HOST)],
    ["admin 405: PUT", send("PUT /api/keys", "Content-Length: 0")],
    ["admin 204: OPTIONS", send("OPTIONS /api/keys/1")],
    ["HEAD admin, getPet 200: no body", send("HEAD /api/pets/1")],
    ["admin, livez 200", bare("GET /livez", HOST)],
    ["admin, readyz 200", bare("GET /readyz?verbose", HOST)],
    ["HEAD admin, metrics 200", send("HEAD /metrics")],
    ["admin, metrics 401", bare("GET /metrics", HOST)],
    ["admin, openapi.json 200", get("/openapi.json")],
    ["admin 400: malformed HTTP", "hello\r\n\r\n"],
    lockOut,
    ["admin 429: too many wrong tokens", bare("GET /api/keys", HOST, "Authorization: Bearer guess")],
  ],
};
