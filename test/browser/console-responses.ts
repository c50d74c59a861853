import type { ResponseOf } from "../../src/operator/operations.ts";

/** What a server responds to the console. Everything is as it was at one moment. */
export interface Responses {
  readonly getServer: ResponseOf<"getServer">;
  readonly getSession: ResponseOf<"getSession">;
  readonly listServers: ResponseOf<"listServers">;
  readonly getOverview: ResponseOf<"getOverview">;
  readonly listKeys: ResponseOf<"listKeys">;
  readonly getKey: ResponseOf<"getKey">;
  readonly getKeyUsage: ResponseOf<"getKeyUsage">;
  readonly listAudit: ResponseOf<"listAudit">;
  readonly listPets: ResponseOf<"listPets">;
  readonly getPet: ResponseOf<"getPet">;
  readonly listOrders: ResponseOf<"listOrders">;
  readonly getOrder: ResponseOf<"getOrder">;
  readonly listRequests: ResponseOf<"listRequests">;
  readonly listOperators: ResponseOf<"listOperators">;
  readonly listPlans: ResponseOf<"listPlans">;
  readonly getBanRules: ResponseOf<"getBanRules">;
  readonly getSettings: ResponseOf<"getSettings">;
  readonly getWebhook: ResponseOf<"getWebhook">;
  readonly rotateKey: ResponseOf<"rotateKey">;
  readonly testWebhook: ResponseOf<"testWebhook">;
}

export const NOW_MS = Date.UTC(2026, 10, 18, 12, 0, 30);
/** The time so many seconds ago; a negative number is the time to come. */
export const ago = (seconds: number): string => new Date(NOW_MS - seconds * 1_000).toISOString();
const [HOUR_S, DAY_S] = [3_600, 86_400];

const figures = {
  requestsPerSecond: 12.34,
  requests: 12_345,
  rejections: 1_234,
  serverErrors: 0,
  connections: 5,
};
const server: Responses["listServers"]["items"][number] = {
  id: "one",
  name: "web-1:8080",
  state: "up",
  adminUrl: "http://10.0.0.1:8090",
  version: "1.5.0",
  startedAt: ago(2 * HOUR_S),
  seenAt: ago(1),
  differing: [],
  clockAheadMs: 12,
  ...figures,
  p50: 0.5,
  p99: 12.34,
};
const [differing, unheard, lost]: Responses["listServers"]["items"] = [
  { ...server, id: "two", name: "web-2:8080", adminUrl: null, startedAt: ago(25), p50: null, p99: null },
  { ...server, id: "three", name: "web-3:8080", state: "unknown", seenAt: ago(40) },
  { ...server, id: "four", name: "web-4:8080", state: "lost", seenAt: ago(400) },
];

/** Twelve steps of five seconds, or of a minute. */
export function overviewOf(step: number): Responses["getOverview"] {
  const end = Math.floor(NOW_MS / 1_000 / step) * step;
  const values = (each: (index: number) => number) =>
    Array.from({ length: 12 }, (_, i) => (i === 0 ? null : each(i)));
  const totals = { clientError: 1, banned: 11, p50: 0.4, p99: 8.1 };
  return {
    range: "15m",
    step,
    times: Array.from({ length: 12 }, (_, i) => end - (11 - i) * step),
    requests: {
      success: values((i) => i * 50),
      clientError: values((i) => (i === 3 ? 1 : 0)),
      limited: values((i) => i * 10),
      banned: values(() => 1),
      serverError: values((i) => (i === 11 ? 2 : 0)),
    },
    p50: values(() => 0.4),
    p99: values((i) => i),
    connections: values(() => 5),
    totals: { ...totals, requests: 3_974, success: 3_300, limited: 660, serverError: 2 },
    before: { ...totals, requests: 1_987, success: 1_900, limited: 60, serverError: 1, p99: 4.05 },
    missing: [],
    bannedKeys: 2,
    expiringKeys: 1,
    closeKeys: { total: 1, first: { id: 8, name: "batch" } },
    deprecatedKeys: 1,
    keyRequests: 20_000,
    topKeys: Array.from({ length: 6 }, (_, i) => ({
      id: 7 + i,
      name: `client ${i}`,
      plan: "pro",
      state: i === 1 ? "banned" : "active",
      usage: i === 2 ? null : KEY.usage,
      admitted: 5_000 - i,
      limited: 3 * i,
      banned: i,
      errors: 2 * i,
      lastUsedAt: i === 3 ? null : ago(5),
    })),
  };
}

export const KEY: Responses["getKey"] = {
  id: 7,
  name: "mobile app",
  owner: "ann@example.com",
  notes: "of the shop",
  labels: ["eu", "mobile", "beta", "old"],
  plan: "enterprise",
  limits: { perMinute: 5_000, perDay: 2_000_000 },
  access: "read",
  state: "active",
  secrets: [
    { hint: "pet_live_aB3d…x9Kq", createdAt: ago(DAY_S), validUntil: null },
    { hint: null, createdAt: null, validUntil: ago(-HOUR_S) },
  ],
  usage: {
    minute: { used: 1_250, limit: 5_000, resetsAt: ago(-20) },
    day: { used: 1_000_000, limit: 2_000_000, resetsAt: ago(-HOUR_S) },
  },
  strikes: 1,
  bannedUntil: null,
  createdAt: ago(10 * DAY_S),
  expiresAt: ago(-90 * DAY_S),
  revokedAt: null,
  lastUsedAt: ago(5),
};
/** What a key has used, in parts of a hundred. */
export const usageOf = (minute: number, day: number): Responses["getKey"]["usage"] => ({
  minute: { used: minute, limit: 100, resetsAt: ago(-20) },
  day: { used: day, limit: 100, resetsAt: ago(-HOUR_S) },
});

const startOfDay = (daysAgo: number) => ago(((NOW_MS / 1_000) % DAY_S) + daysAgo * DAY_S);
const NONE = { admitted: 0, limited: 0, banned: 0, errors: 0 };
const USAGE: Responses["getKeyUsage"] = {
  by: "day",
  since: ago(29 * DAY_S),
  until: ago(0),
  items: [
    { ...NONE, start: startOfDay(3), operation: "listPets", admitted: 9_000, limited: 100, errors: 90 },
    { ...NONE, start: startOfDay(3), operation: "getPet", admitted: 10 },
    { ...NONE, start: startOfDay(0), operation: "none", limited: 7, banned: 3 },
  ],
};

const actor = { operator: "ann", kind: "console", name: "127.0.0.1" } as const;
const byServer = { operator: null, kind: "server", name: "web-1" } as const;
const BAN: Responses["listAudit"]["items"][number] = {
  id: 8n,
  at: ago(20),
  actor: byServer,
  action: "key.banned",
  target: { kind: "key", id: 8n },
  before: null,
  after: { banLengthMs: 300_000 },
};
const AUDIT: Responses["listAudit"] = {
  items: [
    {
      id: 9n,
      at: ago(60),
      actor,
      action: "key.updated",
      target: { kind: "key", id: 7n, name: "mobile app" },
      before: { plan: "free", labels: [], expiresAt: null, perMinute: 60 },
      after: { plan: "pro", labels: ["eu", "beta"], expiresAt: "2027-01-01T00:00:00.000Z", perMinute: 5_000 },
    },
    BAN,
    {
      id: 7n,
      at: ago(2 * HOUR_S),
      actor: { ...byServer, kind: "command line", name: null },
      action: "key.rolled",
      target: { kind: "operator", id: 2n, name: "eve" },
      before: { isDeleted: false },
      after: null,
    },
    { ...BAN, id: 4n, at: ago(22), target: { kind: "key", id: 7n, name: "mobile app" } },
    { id: 6n, at: ago(DAY_S), actor, action: "settings.updated", target: null, before: null, after: null },
    {
      id: 5n,
      at: ago(DAY_S),
      actor,
      action: "order.updated",
      target: { kind: "order", id: 3n },
      before: null,
      after: { status: "completed" },
    },
  ],
  nextCursor: "next",
};

const PET: Responses["getPet"] = { id: 12n, name: "Rex", categoryId: 9_007_199_254_740_993n, status: "sold" };
const ORDER: Responses["getOrder"] = {
  id: 3n,
  petId: 12n,
  petName: "Rex",
  keyId: 7,
  keyName: "mobile app",
  status: "placed",
  createdAt: ago(HOUR_S),
  closedAt: null,
};
const OTHER_ORDER = { ...ORDER, id: 2n, petName: null, keyId: null, keyName: null };

const request: Responses["listRequests"]["items"][number] = {
  id: 5n,
  at: ago(0.877),
  requestId: "0f8fad5b-d9cb-469f",
  keyId: 7,
  method: "GET",
  path: "/v1/pets",
  operation: "listPets",
  status: 200,
  code: null,
  durationMs: 1.25,
  address: "192.0.2.7",
  userAgent: "curl/8",
  server: "one",
};
const REQUESTS: Responses["listRequests"] = {
  items: [
    { ...request, keyName: "mobile app" },
    { ...request, id: 4n, requestId: "limited-1", status: 429, code: "rate_limited", message: "Too many." },
    { ...request, id: 3n, requestId: "banned-11", status: 429, code: "key_banned", server: "two" },
    {
      ...request,
      id: 2n,
      requestId: "missing-1",
      at: ago(DAY_S),
      status: 404,
      code: "not_found",
      message: null,
      keyId: null,
      operation: null,
      userAgent: null,
    },
    { ...request, id: 1n, requestId: "failed-11", status: 500, code: "internal_error", server: "gone" },
    { ...request, id: 0n, requestId: "client-400", status: 400, code: null, keyId: 8 },
  ],
  nextCursor: null,
  servers: [
    { id: "one", name: "web-1", problem: null, since: ago(HOUR_S) },
    { id: "two", name: "web-2", problem: "it does not respond; look at its log", since: ago(2 * HOUR_S) },
  ],
};

const operator: Responses["listOperators"]["items"][number] = {
  id: 1,
  name: "ann",
  role: "admin",
  state: "active",
  hint: "pet_admin_aB3d…x9Kq",
  createdAt: ago(10 * DAY_S),
  tokenCreatedAt: ago(9 * DAY_S),
  expiresAt: ago(-3 * DAY_S),
  overlapEndsAt: ago(-600),
  lastUsedAt: ago(60),
  revokedAt: null,
};
const token = { expiresAt: null, overlapEndsAt: null, lastUsedAt: null } as const;

/** What depends on what is asked for: entries of an action, and the usage of a period before. */
export const answerTo = (
  query: URLSearchParams,
  { listAudit, getKeyUsage, ...others }: Responses,
): Responses => ({
  ...others,
  listAudit: {
    ...listAudit,
    items: listAudit.items.filter(({ action }) => (query.get("action") ?? action) === action),
  },
  getKeyUsage:
    Date.parse(query.get("until") ?? "") < NOW_MS
      ? {
          ...getKeyUsage,
          items: getKeyUsage.items.map((each) => ({ ...each, limited: 0, banned: 3, errors: 9 })),
        }
      : getKeyUsage,
});

export const RESPONSES: Responses = {
  getServer: {
    environment: "production",
    version: "1.5.0",
    runtime: "Bun 1.4.4",
    startedAt: ago(2 * HOUR_S),
    publicUrl: "https://shop.example/v1",
    instance: { address: "127.0.0.1:8080", pid: 123 },
    database: { kind: "SQLite", state: "available", latencyMs: 0.125, waitsForStandby: false },
    rateLimiter: { kind: "memory", state: "available", latencyMs: null },
    draining: false,
  },
  getSession: {
    signedIn: true,
    operator: { id: 1, name: "ann", role: "admin", subject: "https://id.example ann" },
  },
  listServers: { items: [server], total: { ...figures, p50: 0.5, p99: 12.34 } },
  getOverview: overviewOf(5),
  listKeys: {
    items: [
      { ...KEY, usage: usageOf(100, 79) },
      { ...KEY, id: 8, name: "batch", access: "write", labels: ["eu"], usage: usageOf(79, 80), plan: "free" },
      { ...KEY, id: 9, name: "new", owner: null, labels: [], secrets: [], usage: null, lastUsedAt: null },
      { ...KEY, id: 10, state: "disabled", expiresAt: ago(-7 * DAY_S) },
      { ...KEY, id: 11, expiresAt: ago(-7 * DAY_S + 1) },
    ],
    total: 60,
    nextCursor: "next",
    counts: { active: 50, banned: 1, disabled: 2, expired: 0, revoked: 1_007 },
  },
  getKey: KEY,
  getKeyUsage: USAGE,
  listAudit: AUDIT,
  listPets: { items: [PET, { id: 13n, name: "Luna", categoryId: 1n }], nextCursor: null },
  getPet: PET,
  listOrders: {
    items: [ORDER, { ...OTHER_ORDER, status: "completed", closedAt: ago(60) }],
    nextCursor: "next",
  },
  getOrder: ORDER,
  listRequests: REQUESTS,
  listOperators: {
    items: [
      { ...operator, id: 2, name: "old", state: "revoked", revokedAt: ago(DAY_S) },
      operator,
      {
        ...operator,
        ...token,
        id: 3,
        name: "eve",
        role: "support",
        hint: "none",
        subject: "https://id.example eve",
      },
      { ...operator, ...token, id: 4, name: "prometheus", role: "metrics", hint: "pet_admin_" },
      { ...operator, id: 5, name: "late", state: "expired", expiresAt: ago(60) },
    ],
  },
  listPlans: {
    items: [
      { plan: "anonymous", perMinute: 30, perDay: 1_000, keys: null },
      { plan: "free", perMinute: 60, perDay: 10_000, keys: 1_234 },
      { plan: "pro", perMinute: 600, perDay: 100_000, keys: 0 },
    ],
  },
  getBanRules: { strikes: 30, graceMs: 1_500, lengthMs: 300_000, maxLengthMs: 86_400_000 },
  getSettings: {
    items: [
      {
        name: "port",
        variable: "PETSTORE_PORT",
        value: "8081",
        default: "8080",
        source: "flag",
        help: "Where clients connect.",
      },
      {
        name: "database-url",
        variable: "PETSTORE_DATABASE_URL",
        value: "postgres://***",
        default: null,
        source: "variable",
        help: "The database.",
        isVariableOnly: true,
      },
      {
        name: "drain-delay",
        variable: "PETSTORE_DRAIN_DELAY",
        value: null,
        default: "5m",
        source: "default",
        help: "Time to keep serving after a stop signal.",
        given: "4m",
      },
      {
        name: "data",
        variable: "PETSTORE_DATA",
        value: null,
        default: null,
        source: "env file",
        help: "A directory.",
      },
    ],
  },
  getWebhook: {
    url: "https://hooks.example/#1234",
    events: ["key.*", "operator.*"],
    waiting: 3,
    oldestWaitingAt: ago(60),
    deliveries: [
      { id: 9, type: "key.updated", at: ago(60), status: 204, error: null, durationMs: 12 },
      { id: 8, type: "key.banned", at: ago(90), status: 500, error: null, durationMs: 1_200 },
      { id: 7, type: "key.rolled", at: ago(99), status: null, error: "connection refused", durationMs: 3 },
    ],
  },
  rotateKey: { key: KEY, secret: "pet_live_0123456789", overlapEndsAt: ago(-DAY_S) },
  testWebhook: {
    url: "https://hooks.example/#1234",
    isDelivered: false,
    status: null,
    error: "connection refused",
    durationMs: 1_500,
    response: null,
  },
};

/** Five servers, each in another state. */
export const SERVERS: Responses["listServers"] = {
  items: [
    server,
    {
      ...server,
      id: "five",
      name: "web-5:8080",
      differing: [{ name: "public-url", value: "http://other/v1" }],
      clockAheadMs: -3_600_000,
    },
    differing ?? server,
    unheard ?? server,
    lost ?? server,
  ],
  total: RESPONSES.listServers.total,
};
