import { type AccessLogField, MAX_LOGGED_LENGTH, MAX_LOGGED_METHOD_LENGTH } from "../domain/logging.ts";
import { HEALTH_PATH } from "../domain/paths.ts";
import { ANY_SECRET_PREFIX } from "../domain/secrets.ts";
import { SECRET } from "../domain/masks.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import type { RequestObserver, RequestRecord } from "./request-record.ts";
import type { Response } from "../http1/index.ts";
import type { Log } from "./log.ts";
import { type FileHandle, stat } from "node:fs/promises";
import { openToAppend } from "../runtime/own-files.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { type LineOutput, LineWriter } from "./line-writer.ts";
import { traceContextOf } from "./trace.ts";

interface AccessLog {
  readonly observe: RequestObserver;
  /** Resolves when the lines are written, or when the time to write them is over. */
  close(): Promise<void>;
}

interface AccessLogOptions {
  /** A path, or `-` for standard output. */
  readonly file: string;
  readonly omit?: readonly AccessLogField[] | undefined;
  readonly log: Log;
}

/** Throws if the file cannot be opened. */
export async function openAccessLog(options: AccessLogOptions): Promise<AccessLog> {
  const { file, log } = options;
  const output = file === "-" ? outputLines : await openLogFile(file);
  const writer = new LineWriter({
    output,
    onFailure: (error) => log.event("access-log.failed", { file, error }),
    onRecovery: () => log.event("access-log.recovered", { file }),
    onDropped: (lines) => log.event("access-log.lines-dropped", { file, lines }),
  });
  const healthChecks = new TokenBucket(ONE_A_MINUTE);
  const preflights = new TokenBucket(ONE_A_MINUTE);
  return {
    observe(record, response) {
      const others = record.request.path === HEALTH_PATH ? healthChecks : preflights;
      if (!record.isCounted(response) && !others.take()) return;
      writer.write(accessLine(record, response, options));
    },
    close: () => writer.close(),
  };
}

/** A limit for requests that no rate limit bounds: a line for each of them could fill the disk. */
const ONE_A_MINUTE = { max: 1, perSecond: 1 / 60, now: () => scheduler.now() };

const outputLines: LineOutput = {
  write: (bytes) =>
    new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve(bytes.length)));
    }),
  async prepare() {},
  async close() {},
};

/**
 * Formats one line, which is a JSON object. That takes about 1.3 µs of CPU time, half of what `JSON.stringify` takes,
 * and writing the line takes 0.6 µs.
 */
export function accessLine(
  record: RequestRecord,
  response: Response,
  { omit = [] }: Pick<AccessLogOptions, "omit">,
): string {
  const { request, requestId, operation, keyId } = record;
  const { method, path, headers } = request;
  const { status, body, errorCode } = response;
  const durationMs = Math.round(record.durationMs * 1_000) / 1_000;
  const bytes = body === null || method === "HEAD" ? 0 : Buffer.byteLength(body);
  const optional = (field: AccessLogField, text: string | undefined) =>
    text === undefined || omit.includes(field) ? "" : `"${field}":${quotedWithoutSecrets(text)},`;
  return (
    `{"time":"${isoTime(Date.now())}","requestId":${quotedWithoutSecrets(requestId)},` +
    optional("traceId", record.trace?.traceId ?? traceContextOf(request)?.traceId) +
    optional("address", request.clientAddress) +
    `"keyId":${keyId},"method":${quotedWithoutSecrets(method.slice(0, MAX_LOGGED_METHOD_LENGTH))},` +
    optional("path", path.slice(0, MAX_LOGGED_LENGTH)) +
    `"operation":${operation ? `"${operation}"` : null},"status":${status},` +
    optional("errorCode", errorCode) +
    optional("userAgent", headers.get("user-agent")?.slice(0, MAX_LOGGED_LENGTH)) +
    `"durationMs":${durationMs},"bytes":${bytes}}\n`
  );
}

/** The last time and its text, because many lines have the same time. */
let lastTime = { ms: 0, text: "" };

function isoTime(ms: number): string {
  if (ms !== lastTime.ms) lastTime = { ms, text: new Date(ms).toISOString() };
  return lastTime.text;
}

/** Matches secrets, and all characters that JSON or a terminal treats specially. */
const UNSAFE = new RegExp(`${SECRET.source}|[^ !#-[\\]-~]`, "g");
const PLAIN = /^[ !#-[\]-~]*$/;

export function quotedWithoutSecrets(text: string): string {
  const isSafe = PLAIN.test(text) && !text.includes(ANY_SECRET_PREFIX);
  return isSafe ? `"${text}"` : `"${text.replace(UNSAFE, safe)}"`;
}

function safe(found: string, prefix: string | undefined): string {
  return prefix ? `${prefix}…` : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export async function openLogFile(path: string): Promise<LineOutput> {
  let handle = await openToAppend(path).catch((cause: unknown) => {
    throw new Error("cannot open the access log", { cause });
  });
  return {
    write: async (bytes) => (await handle.write(bytes)).bytesWritten,
    /** Continues with a new file if the file was renamed or removed. */
    async prepare() {
      if (await isAt(handle, path)) return;
      const previous = handle;
      handle = await openToAppend(path);
      await previous.close();
    },
    close: () => handle.close(),
  };
}

async function isAt(handle: FileHandle, path: string): Promise<boolean> {
  const [opened, named] = await Promise.all([handle.stat(), stat(path).catch(() => undefined)]);
  return named !== undefined && named.ino === opened.ino && named.dev === opened.dev;
}
