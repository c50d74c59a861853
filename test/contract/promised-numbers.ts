import * as Times from "./promised-times.ts";

/** A number that the documentation promises. */
export interface PromisedNumber {
  /** The text of the page, without markup, that has the number and no other one. */
  readonly text: string;
  /** What keeps it: a file of src and the code in it that has the number. Undefined if that is somewhere else. */
  readonly kept: Readonly<Record<string, string>>;
  /**
   * The proof: it moves an injected clock by exactly the time that is promised. Or the file and the name of the test
   * that has it.
   */
  readonly proof: (() => Promise<void>) | readonly [file: string, test: string];
}

const POOLS = "store/postgres/pools.ts";
const LIMITS = "http1/connection-limits.ts";
const TIME_UNITS = "text/time-units.ts";
const FAULTS = "test/engines/store/postgres-faults.test.ts";
const CASES = "test/conformance/rate-limiter-cases.ts";
const RETENTION = "test/store/retention-clock.test.ts";
const KEPT_USAGE = "deleteOldUsage: hours are kept for 35 days, days for 400 days, and the last use for good";
const EXACT = [
  CASES,
  "of 61 requests within a minute of the first, to the millisecond, exactly 60 are allowed",
] as const;
const QUERY_TIMEOUT = [
  FAULTS,
  "by default, calls are rejected after 2,000 ms, and more than 4,096 in a queue at once",
] as const;
const RECOVERS = [
  FAULTS,
  "frozen: one call is rejected within the timeout, then all at once; after the thaw the store recovers",
] as const;
const IDEMPOTENCY = [
  "test/http/clock.test.ts",
  "createPet 201: an Idempotency-Key is forgotten after 24 hours",
] as const;
const WORKERS = ["test/docs-site/workers.test.ts", "workers of the example for 429 on one Free key"] as const;

const usage = {
  kept: { "background/usage-recorder.ts": "SAVE_EVERY_MS = 2_000" },
  proof: Times.usageIsStoredWithin5Seconds,
};
const revoked = {
  kept: { "changes/polls.ts": "POLL_EVERY_MS = 250" },
  proof: Times.keyChangesAreReadWithinASecond,
};
const queryTimeout = { kept: { [POOLS]: "timeoutMs = 2_000" }, proof: QUERY_TIMEOUT };
const probe = { kept: { [POOLS]: "probeEveryMs = 200" }, proof: RECOVERS };
const setForward = {
  kept: { "store/retention-clock.ts": "aheadMs <= DAY_MS" },
  proof: [RETENTION, "a server that was off for months deletes nothing for a day, then trusts its clock"],
} as const;
const queue = {
  kept: { "store/postgres/key-limiter.ts": "MAX_QUEUED = 10_000" },
  proof: [
    "test/engines/rate-limit/postgres-rate-limiter.test.ts",
    "with 10,000 requests in the queue the next one is rejected, and those before it are decided",
  ],
} as const;
const handshakes = {
  kept: { "http1/tls.ts": "MAX_HANDSHAKES_PER_SECOND = 100" },
  proof: ["test/http1/tls.test.ts", "closes connections beyond 100 of one address in a second"],
} as const;

/** Every number with a unit, and every other number, of these pages. */
export const PROMISED_NUMBERS: Readonly<Record<string, readonly PromisedNumber[]>> = {
  "reliability.md": [
    {
      text: "exits within 10 s",
      kept: { "cli/terminal.ts": "STOP_TIMEOUT_MS = 9_500" },
      proof: Times.serverStopsWithin10Seconds,
    },
    { text: "Up to 5 s of usage history", ...usage },
    {
      text: "on SQLite, 1 s of quota are lost",
      kept: { "rate-limit/memory-rate-limiter.ts": "flushEveryMs = 500" },
      proof: Times.quotaIsStoredWithinASecond,
    },
    { text: "within 2 s at first", ...queryTimeout },
    { text: "Verified keys stay verified. | within 1 s", ...probe },
    {
      text: "Up to 1 s of counts that no running server knows may be lost.",
      kept: { "store/postgres/key-limiter.ts": "sql.unsafe(WRITE_TO_LOG)" },
      proof: [
        "test/engines/rate-limit/postgres-rate-limiter.test.ts",
        "after %s, bans that were answered stay, and at most a second of counting is lost",
      ],
    },
    { text: "| within 1 s | | One connection", ...probe },
    { text: "within 2 s for its requests", ...queryTimeout },
    { text: "Revoked keys are rejected within a second, as always. | within 2 s", ...revoked },
    {
      text: "waits for 7 s gets 503",
      kept: { "api/dispatch.ts": "HANDLING_TIMEOUT_MS = 7_000" },
      proof: ["test/http/request-timeout.test.ts", "work that never settles is Unavailable after 7 seconds"],
    },
    {
      text: "waits for more than 2 s",
      kept: { "store/sqlite/commit-queue.ts": "SLOW_SYNC_MS = 2_000" },
      proof: ["test/store/commit-queue.test.ts", "a sync that takes 2 s is reported, and its end"],
    },
    {
      text: "Within a second the server saves the data",
      kept: { "store/sqlite/open-files.ts": "CHECK_EVERY_MS = 500" },
      proof: Times.lostDatabaseIsSavedWithinASecond,
    },
    { text: "set forward by more than a day", ...setForward },
    { text: "when it is right, or after a day", ...setForward },
    { text: "for requests beyond 10,000 that wait", ...queue },
    {
      text: "allow 60 requests of a limit of 60,",
      kept: { [TIME_UNITS]: "MINUTE_MS = 60_000" },
      proof: EXACT,
    },
    { text: "requests beyond 10,000", ...queue },
    { text: "A clock that is set back by more than a day.", ...setForward },
    {
      text: "its clock that counts the 24 hours",
      kept: {
        "domain/idempotency.ts": "IDEMPOTENCY_LIFETIME_MS = DAY_MS",
        [TIME_UNITS]: "DAY_MS = 24 * HOUR_MS",
      },
      proof: IDEMPOTENCY,
    },
    {
      text: "off by more than 2 s",
      kept: { "domain/clock-difference.ts": "CLOCK_TOLERANCE_MS = 2_000" },
      proof: [
        "test/background/clock-watch.test.ts",
        "a clock that differs is one event until it agrees again, and known within five seconds",
      ],
    },
    {
      text: "the five minutes of a sign-in code",
      kept: { "operator/sign-in/code.ts": "CODE_MS = 5 * MINUTE_MS" },
      proof: ["test/admin/operators.test.ts", "a code works once, for five minutes, and names its operator"],
    },
  ],
  "security.md": [
    {
      text: "64 fewer than the limit of open files, at most 20,000;",
      kept: { [LIMITS]: "RESERVED_DESCRIPTORS = 64" },
      proof: [
        "test/http1/connection-limits.test.ts",
        "is 64 below the limit of open files, and 20,000 at most",
      ],
    },
    {
      text: "Connections of one address | 256 ",
      kept: { "config/options.ts": "default: 256" },
      proof: [
        "test/http1/connection-limits.test.ts",
        "closes further connections of that address, and no others",
      ],
    },
    { text: "with TLS 100 new ones a second", ...handshakes },
    {
      text: "Request body | 16 KiB",
      kept: { "domain/size-limits.ts": "MAX_BODY_BYTES = 16 * 1024" },
      proof: [
        "test/http/pets.test.ts",
        "createPet: a body of 16 KiB is read, one byte more is 413, also without a length",
      ],
    },
    {
      text: "validated in at most 2 ms",
      kept: {},
      proof: ["test/contract/json-fields.test.ts", "a body of 16 KiB takes at most 2 ms:"],
    },
    {
      text: "300 a minute and 10,000 a day, then 429",
      kept: { "domain/plans.ts": "anonymous: { perMinute: 300, perDay: 10_000 }" },
      proof: ["test/auth/lookup-queue.test.ts", "unknown keys are looked up until the limit is reached"],
    },
    {
      text: "slowed after 20 responses with 401 or 429, and closed after 1,000",
      kept: { "http1/slow-rejected-clients.ts": "MAX_UNSLOWED_REJECTIONS = 20" },
      proof: [
        "test/http1/connection-scheduler.test.ts",
        "20 in a row are not slowed; then it waits 10 ms after each, and closes after 1,000",
      ],
    },
    {
      text: "About 1 KiB for an idle connection",
      kept: { "http1/connection.ts": "FORGET_SECONDS = 2" },
      proof: [
        "test/http1/memory.test.ts",
        "a connection that is idle for 3 seconds does not hold many small header fields",
      ],
    },
    {
      text: "1,600 a second on PostgreSQL",
      kept: { "auth/lookup-queue.ts": "MAX_RUNNING = 16" },
      proof: ["test/auth/lookup-queue.test.ts", "of unknown keys, 16 are looked up in 10 ms"],
    },
    {
      text: "100 a second for all addresses that are at their limit",
      kept: { "auth/lookup-queue.ts": "LIMITED_PER_SECOND = 100" },
      proof: [
        "test/auth/lookup-queue.test.ts",
        "unknown keys are looked up until the limit is reached, then 50 at once and 100 a second",
      ],
    },
    {
      text: "has at most 200 connections",
      kept: { "operator/admin-listener.ts": "MAX_CONNECTIONS = 200" },
      proof: ["test/admin/crowded-listener.test.ts", "connections of operators stay while 260 others come"],
    },
    {
      text: "a body has 5 seconds to arrive",
      kept: { "operator/admin-listener.ts": "UNAUTHENTICATED_BODY_SECONDS = 5" },
      proof: ["test/http1/timeouts.test.ts", "a body without authentication has them"],
    },
    {
      text: "From one address 20 sign-ins begin at once and 1 a second",
      kept: { "operator/sign-in/provider-sign-in.ts": "STEPS_OF_ADDRESS = { max: 20, perSecond: 1 }" },
      proof: [
        "test/admin/provider-sign-in.test.ts",
        "sign-ins that anybody can begin are limited: 20 at once",
      ],
    },
    {
      text: "from all together 200 and 20 a second",
      kept: { "operator/sign-in/provider-sign-in.ts": "STEPS = { max: 200, perSecond: 20 }" },
      proof: [
        "test/admin/provider-sign-in.test.ts",
        "sign-ins that anybody can begin are limited: 20 at once",
      ],
    },
    {
      text: "this environment began within 10 minutes",
      kept: { "operator/sign-in/sign-in-states.ts": "VALID_MS = 10 * MINUTE_MS" },
      proof: ["test/admin/provider-sign-in.test.ts", "a sign-in that this environment has begun ends, once"],
    },
    {
      text: "bounds the time (2 to 30 seconds)",
      kept: {
        "cli/commands/health.ts": "TIMEOUT_MS = 2_000",
        "cli/calls/remote-server.ts": "TIMEOUT_MS = 30_000",
      },
      proof: [
        "test/runtime/outgoing-request.test.ts",
        "every request that leaves a server or a command goes through one function",
      ],
    },
    {
      text: "Its files have mode 0600 and its directories 0700,",
      kept: { "runtime/own-files.ts": "PRIVATE_FILE = 0o600" },
      proof: ["test/cli/data-directory.test.ts", "those of a server, and the directories that it creates"],
    },
    {
      text: "Files are read again within 3 seconds",
      kept: {
        "config/follow-files.ts": "EVERY_MS = 1_000",
        "operator/sign-in/setting-tokens.ts": "EVERY_MS = 250",
      },
      proof: Times.filesAreReadWithin3Seconds,
    },
  ],
  "rate-limits.md": [
    {
      text: "closes 60 seconds, or 24 hours, later",
      kept: { [TIME_UNITS]: "MINUTE_MS = 60_000" },
      proof: EXACT,
    },
    { text: "a random delay of up to a second", kept: {}, proof: WORKERS },
    { text: "Up to ten workers", kept: {}, proof: WORKERS },
    {
      text: "Up to 50 do not either if each sends its next request within eight seconds of the last one",
      kept: {},
      proof: WORKERS,
    },
    {
      text: "Both send two requests a second",
      kept: { "../docs/rate-limit-figure.ts": "EVERY_S = 0.5" },
      proof: ["test/docs.test.ts", "docs/rate-limits.svg is up to date"],
    },
  ],
  "usage-history.md": [
    {
      text: "Hours are kept for 35 days and days for 400 days.",
      kept: { "domain/usage-history.ts": "HOURLY_USAGE_DAYS = 35" },
      proof: ["test/conformance/usage-history.ts", KEPT_USAGE],
    },
    {
      text: "the last 24 hours by hour, and the last 30 days otherwise",
      kept: {},
      proof: ["test/admin/history.test.ts", "has the rows by hour of the last 24 hours"],
    },
    { text: "in the database within five seconds", ...usage },
    { text: "at most the last five seconds are lost", ...usage },
    {
      text: "about 110 kB in SQLite, and 430 kB in PostgreSQL",
      kept: {},
      proof: Times.aKeyTakes110KilobytesOfSqlite,
    },
  ],
};

/** The blocks of these pages that are made of the code, and the tests of their numbers. */
export const GENERATED_NUMBERS: Readonly<Record<string, readonly [file: string, test: string]>> = {
  plans: EXACT,
  "plans-note": EXACT,
  workers: WORKERS,
  "ban-rules": [CASES, "a client that sends ten requests a second is banned for 300 seconds within eleven"],
  "example-rate-limits": ["test/client/retries.test.ts", "after Retry-After"],
};
