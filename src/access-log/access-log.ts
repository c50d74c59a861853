import { Unavailable } from "../contract/errors.ts";
import type { RequestObserver, RequestRecord } from "../http/request-record.ts";
import type { Response } from "../http1/index.ts";
import type { Log } from "../log.ts";
import { type LineOutput, LineWriter } from "./line-writer.ts";
import { openLogFile } from "./log-file.ts";

export interface AccessLog {
  readonly observe: RequestObserver;
  /** Resolves when the lines are written, or cannot be written in time. */
  close(): Promise<void>;
}

/** `file` is a path, or `-` for standard output. Throws if the file cannot be opened. */
export async function openAccessLog(file: string, log: Log): Promise<AccessLog> {
  const writer = new LineWriter({
    output: file === "-" ? standardOutput : await openLogFile(file),
    onFailed: (error) => log.event("access-log.failed", { file, error }),
    onRecovered: () => log.event("access-log.recovered", { file }),
    onDropped: (lines) => log.event("access-log.lines-dropped", { file, lines }),
  });
  const lineOf = createLineFormat();
  return {
    observe: (record, response) => writer.write(lineOf(record, response)),
    close: () => writer.close(),
  };
}

const standardOutput: LineOutput = {
  write: (bytes) =>
    new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve(bytes.length)));
    }),
  async followRotation() {},
  async close() {},
};

/** A method in a request line can be as long as the line. */
const MAX_METHOD_LENGTH = 20;
const NEEDS_ESCAPE = /["\\]/;

/**
 * One JSON object per request. It is written by hand, because `JSON.stringify` takes twice as long: the request id is
 * visible ASCII, a method is a token, and everything else is a number or a name of ours.
 */
export function createLineFormat(
  now = () => Date.now(),
): (record: RequestRecord, response: Response) => string {
  let second = 0;
  let start = "";

  /** RFC 3339 with milliseconds. The part before them changes once a second. */
  function timeText(): string {
    const ms = now();
    const milliseconds = ms % 1_000;
    if (ms - milliseconds !== second) {
      second = ms - milliseconds;
      start = new Date(second).toISOString().slice(0, -"000Z".length);
    }
    return `${start}${String(milliseconds).padStart(3, "0")}Z`;
  }

  return (record, { status, body }) => {
    const { request, requestId, startedAt, operation } = record;
    const { method } = request;
    const durationMs = Math.round((performance.now() - startedAt) * 1_000) / 1_000;
    const id = NEEDS_ESCAPE.test(requestId) ? JSON.stringify(requestId) : `"${requestId}"`;
    const shownMethod = method.length > MAX_METHOD_LENGTH ? method.slice(0, MAX_METHOD_LENGTH) : method;
    const shownOperation = operation === undefined ? "null" : `"${operation}"`;
    const bytes = body === null || method === "HEAD" ? 0 : Buffer.byteLength(body);
    return `{"time":"${timeText()}","requestId":${id},"keyId":${keyIdOf(record)},"method":"${shownMethod}","operation":${shownOperation},"status":${status},"durationMs":${durationMs},"bytes":${bytes}}\n`;
  };
}

function keyIdOf({ principal }: RequestRecord): number | null {
  return typeof principal === "object" && !(principal instanceof Unavailable) ? principal.keyId : null;
}
