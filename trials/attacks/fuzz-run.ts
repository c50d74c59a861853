import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseResponses, RawConnection, sendOnce } from "../harness/http-connection.ts";
import { addressOf } from "./attacks.ts";
import { Random } from "../harness/random.ts";
import { type FuzzRequest, fuzzRequest } from "./fuzz-requests.ts";

export interface FuzzOptions {
  readonly url: string;
  readonly key: string;
  readonly seed: number;
  readonly count: number;
  readonly seconds: number;
  /** Called after about every thousand requests and the valid request that follows them. */
  onThousand?(sent: number): void;
}

const CONNECTIONS = 8;
const MAX_BATCH = 30;
const GOOD_EVERY = 1_000;
const TIMEOUT_MS = 20_000;
/** The number of connections from one address. The ports of closed connections stay in use for a minute. */
const PER_ADDRESS = 200;
const ADDRESSES = 250;

/** Sends generated requests until one of them causes a problem. */
export async function runFuzz(options: FuzzOptions) {
  const { url, key, count, seconds } = options;
  const port = Number(new URL(url).port);
  const declared = await declaredStatuses(url);
  const random = new Random(options.seed);
  /** The number of responses by status. */
  const statuses = new Map<number, number>();
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1_000;
  let sent = 0;
  let opened = 0;
  /** The number of connections that ended without a response. */
  let silent = 0;
  /** The first problem, with the bytes that were sent. */
  let problem: string | undefined;

  const sendBatches = async () => {
    while (sent < count && elapsed() < seconds && problem === undefined) {
      const before = sent;
      const batch = batchOf(random, key, Math.min(MAX_BATCH, count - sent));
      sent += batch.length;
      const from = addressOf(Math.floor(opened++ / PER_ADDRESS) % ADDRESSES);
      const text = batch.map(({ text }) => text).join("");
      const received = await exchange(port, from, text);
      const methods = batch.map(({ method }) => method);
      const { responses, rest } = parseResponses(received, methods);
      const found = problemOf(batch, { responses, rest }, declared);
      if (found !== undefined) problem ??= `${found}\nsent: ${escapeBytes(text)}`;
      if (responses.length === 0) silent++;
      for (const { status } of responses) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (Math.floor(sent / GOOD_EVERY) > Math.floor(before / GOOD_EVERY)) {
        const failure = await goodRequest(port, key);
        if (failure !== undefined) problem ??= `a good request failed: ${failure}`;
        options.onThousand?.(sent);
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sendBatches));
  return { sent, seconds: elapsed(), statuses, silent, problem };
}

/** Makes a batch, which ends with the first request after which nothing can follow. */
function batchOf(random: Random, key: string, max: number): FuzzRequest[] {
  const batch: FuzzRequest[] = [];
  while (batch.length < max && batch.at(-1)?.isFramed !== false) batch.push(fuzzRequest(random, key));
  return batch;
}

/**
 * Sends the bytes and then the end of the stream. Resolves to everything that arrives before the server ends its side.
 */
async function exchange(port: number, from: string, text: string): Promise<string> {
  const connection = new RawConnection(port, from);
  const timer = setTimeout(() => connection.socket.destroy(new Error("silence")), TIMEOUT_MS);
  connection.socket.end(text, "latin1");
  const received = await connection.rest();
  clearTimeout(timer);
  connection.socket.destroy();
  return connection.error?.message === "silence" ? `the connection was open for ${TIMEOUT_MS} ms` : received;
}

async function goodRequest(port: number, key: string): Promise<string | undefined> {
  const headers = [["Authorization", `Bearer ${key}`]] as const;
  return sendOnce(port, { path: "/v1/pets", headers }).then(
    ({ status }) => (status === 200 ? undefined : `status ${status}`),
    String,
  );
}

/** The status of `/`, which redirects to `/docs`. */
const REDIRECT = 302;

/** The statuses of the server's document, that of `/`, and those of malformed requests in docs/errors.md. */
async function declaredStatuses(url: string): Promise<ReadonlySet<number>> {
  const statuses = new Set([REDIRECT]);
  const collect = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      // 5xx responses are declared, because they can happen, but bad requests must not cause them.
      if (/^[1-4]\d\d$/.test(name)) statuses.add(Number(name));
      collect(member);
    }
  };
  collect(await (await fetch(new URL("/openapi.json", url))).json());
  const errorsPage = readFileSync(join(import.meta.dir, "../../docs/errors.md"), "utf8");
  const [, malformed = ""] = errorsPage.split("## Malformed HTTP requests");
  for (const [, status] of malformed.matchAll(/(\d{3})\s`\w+`/g)) statuses.add(Number(status));
  return statuses;
}

/** Describes what is wrong with the responses on one connection; undefined if nothing is. */
function problemOf(
  requests: readonly FuzzRequest[],
  { responses, rest }: ReturnType<typeof parseResponses>,
  declared: ReadonlySet<number>,
): string | undefined {
  if (rest !== "") return `not a response: ${escapeBytes(rest.slice(-300))}`;
  const undeclared = responses.find(({ status }) => !declared.has(status));
  if (undeclared) return `status ${undeclared.status}`;
  const expected = requests.filter(({ isFramed }) => isFramed).length;
  const isEndedByServer = responses.at(-1)?.headers["connection"] === "close";
  if (responses.length < expected && !isEndedByServer)
    return `${responses.length} responses to ${expected} requests`;
  return undefined;
}

/** Escapes bytes outside of printable ASCII as \xNN. */
function escapeBytes(text: string): string {
  return text.replace(/[^\x20-\x7e]|\\/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
