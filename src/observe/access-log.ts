import { Unavailable } from "../api/errors.ts";
import type { RequestObserver, RequestRecord } from "../petstore/request-record.ts";
import type { Response } from "../http1/index.ts";
import type { Log } from "./log.ts";
import { standardOutput } from "./standard-streams.ts";
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
    output: file === "-" ? outputLines : await openLogFile(file),
    onFailed: (error) => log.event("access-log.failed", { file, error }),
    onRecovered: () => log.event("access-log.recovered", { file }),
    onDropped: (lines) => log.event("access-log.lines-dropped", { file, lines }),
  });
  return {
    observe: (record, response) => writer.write(accessLine(record, response)),
    close: () => writer.close(),
  };
}

const outputLines: LineOutput = {
  write: (bytes) =>
    new Promise((resolve, reject) => {
      standardOutput().write(bytes, (error) => (error ? reject(error) : resolve(bytes.length)));
    }),
  async followRotation() {},
  async close() {},
};

/** A method in a request line can be as long as the line. */
const MAX_METHOD_LENGTH = 20;

/** One JSON object. It takes about 1 µs of CPU time, and writing it 0.6 µs. */
export function accessLine(record: RequestRecord, { status, body }: Response, now = Date.now()): string {
  const { request, requestId, startedAt, operation = null } = record;
  const { method } = request;
  return `${JSON.stringify({
    time: new Date(now).toISOString(),
    requestId,
    keyId: keyIdOf(record),
    method: method.slice(0, MAX_METHOD_LENGTH),
    operation,
    status,
    durationMs: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
    bytes: body === null || method === "HEAD" ? 0 : Buffer.byteLength(body),
  })}\n`;
}

function keyIdOf({ principal }: RequestRecord): number | null {
  return typeof principal === "object" && !(principal instanceof Unavailable) ? principal.keyId : null;
}
