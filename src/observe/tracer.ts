import { hostname } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import { type AccessLogField, MAX_LOGGED_LENGTH, MAX_LOGGED_METHOD_LENGTH } from "../domain/logging.ts";
import { HEALTH_PATH } from "../domain/paths.ts";
import { ABORTED_RESPONSE } from "../api/responses.ts";
import type { Request, Response } from "../http1/index.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { sendRequest } from "../runtime/outgoing-request.ts";
import { quotedWithoutSecrets } from "./access-log.ts";
import { type LineOutput, LineWriter } from "./line-writer.ts";
import type { Log } from "./log.ts";
import type { RequestObserver, RequestRecord } from "./request-record.ts";
import { randomId, Trace, traceContextOf } from "./trace.ts";

export interface TracerOptions {
  /** The collector, such as http://127.0.0.1:4318/v1/traces. */
  readonly url: string;
  /** The share of the requests without a `traceparent` that are traced, from 0 to 1. */
  readonly sample: number;
  readonly omit: readonly AccessLogField[];
  readonly environment: string;
  /** The identifier of the server. */
  readonly serverId: string;
  readonly isTls: boolean;
  /** The path of each operation, such as /v1/pets/{petId}. */
  readonly routes: ReadonlyMap<string, string>;
  readonly log: Log;
  readonly exportEveryMs?: number;
}

const EXPORT_EVERY_MS = 5_000;
const TIMEOUT_MS = 10_000;
/** More of a response is not read. */
const MAX_RESPONSE_BYTES = 4_096;
/**
 * Spans are formatted for many requests at once: with a sample of 1 in 100, code that runs once in a while takes 90 µs
 * for a request, and in a loop 20.
 */
const FORMATTED_AT_ONCE = 256;
/** The statuses after which OTLP/HTTP repeats a request. */
const RETRIED = new Set([429, 502, 503, 504]);

/** Exports spans of requests as OTLP/HTTP in JSON. Spans that the collector does not take in time are dropped. */
export class Tracer {
  readonly #options: TracerOptions;
  readonly #writer: LineWriter;
  /** Requests whose spans are not formatted yet. */
  readonly #ended: EndedRequest[] = [];
  #exported = 0;
  #problem: unknown;

  constructor(options: TracerOptions) {
    const { url, log, exportEveryMs = EXPORT_EVERY_MS } = options;
    const collector = new URL(url).origin;
    this.#options = options;
    this.#writer = new LineWriter({
      output: this.#outputTo(url),
      writeEveryMs: exportEveryMs,
      onFailure: (error) => log.event("tracing.failed", { collector, error }),
      onRecovery: () => log.event("tracing.recovered", { collector }),
      onDropped: (requests) =>
        log.event("tracing.spans-dropped", { collector, requests, error: this.#problem }),
    });
  }

  /** The number of traced requests whose spans the collector has taken, or never will. */
  get counts(): { readonly exported: number; readonly dropped: number } {
    return { exported: this.#exported, dropped: this.#writer.dropped };
  }

  /** Returns undefined for a request that is not traced. */
  start(request: Request): Trace | undefined {
    if (request.path === HEALTH_PATH) return undefined;
    const parent = traceContextOf(request);
    const isSampled = parent?.isSampled ?? scheduler.random() < this.#options.sample;
    return isSampled ? new Trace(parent) : undefined;
  }

  readonly observe: RequestObserver = (record, response) => {
    if (!record.trace) return;
    record.trace.end();
    if (this.#ended.push(endedRequest(record.trace, record, response)) >= FORMATTED_AT_ONCE)
      this.#formatEnded();
  };

  close(): Promise<void> {
    this.#formatEnded();
    return this.#writer.close();
  }

  #formatEnded(): void {
    for (const each of this.#ended.splice(0)) this.#writer.write(`${spansOf(each, this.#options)}\n`);
  }

  #outputTo(url: string): LineOutput {
    const [head, tail] = envelopeOf(this.#options);
    return {
      write: async (bytes) => {
        // One line has the spans of one request.
        const lines = Buffer.from(bytes).toString().trimEnd().split("\n");
        await this.#send(url, head + lines.join(",") + tail, lines.length);
        return bytes.length;
      },
      prepare: async () => this.#formatEnded(),
      async close() {},
    };
  }

  /** Throws if the request should be repeated. */
  async #send(url: string, body: string, requests: number): Promise<void> {
    const { status } = await sendRequest(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_RESPONSE_BYTES,
      // The status is the response.
      isEnough: () => false,
    });
    if (status >= 200 && status < 300) {
      this.#exported += requests;
      return;
    }
    this.#problem = new Error(`the collector responded with ${status}`);
    if (RETRIED.has(status)) throw this.#problem;
    this.#writer.dropped += requests;
  }
}

/** The beginning and the end of a request to the collector, with what all spans have in common. */
function envelopeOf({ environment, serverId }: TracerOptions): readonly [string, string] {
  const { name, version } = packageJson;
  const resource = attributes({
    "service.name": name,
    "service.version": version,
    "service.instance.id": serverId,
    "deployment.environment.name": environment,
    "host.name": hostname(),
  });
  const scope = JSON.stringify({ name, version });
  return [
    `{"resourceSpans":[{"resource":{"attributes":${resource}},"scopeSpans":[{"scope":${scope},"spans":[`,
    "]}]}]}",
  ];
}

/** The values of `Span.SpanKind` and `Status.StatusCode` in opentelemetry/proto/trace/v1/trace.proto. */
const INTERNAL = 1;
const SERVER = 2;
const ERROR = 2;

const SPAN_ID_BYTES = 8;

const METHODS = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]);

type EndedRequest = ReturnType<typeof endedRequest>;

/** What the spans say of a request. An observer must not keep the record. */
function endedRequest(trace: Trace, record: RequestRecord, { status, errorCode }: Response) {
  const { request, requestId, operation, keyId, durationMs } = record;
  const { method, path, clientAddress, headers } = request;
  const userAgent = headers.get("user-agent");
  return {
    trace,
    method,
    path,
    clientAddress,
    userAgent,
    requestId,
    operation,
    keyId,
    durationMs,
    status,
    errorCode,
  };
}

/** The span of the request and those of its parts, by the conventions of OpenTelemetry for HTTP servers. */
function spansOf(request: EndedRequest, { omit, isTls, routes }: TracerOptions): string {
  const { trace, method, operation, keyId, durationMs, status } = request;
  const { traceId, parentId, startedAt, spans } = trace;
  const optional = (field: AccessLogField, text: string | null | undefined) =>
    omit.includes(field) ? undefined : text?.slice(0, MAX_LOGGED_LENGTH);
  const isKnown = METHODS.has(method);
  const route = operation && routes.get(operation);
  const ids = randomId(SPAN_ID_BYTES * (1 + spans.length));
  const idOf = (span: number) => ids.slice(span * 2 * SPAN_ID_BYTES, (span + 1) * 2 * SPAN_ID_BYTES);
  const spanId = idOf(0);
  const between = (from: number, to: number) =>
    `"startTimeUnixNano":"${nanoseconds(startedAt + from)}","endTimeUnixNano":"${nanoseconds(startedAt + to)}"`;
  const server =
    `{"traceId":"${traceId}","spanId":"${spanId}",${parentId ? `"parentSpanId":"${parentId}",` : ""}` +
    `"name":"${isKnown ? method : "HTTP"}${route ? ` ${route}` : ""}","kind":${SERVER},` +
    `${between(0, durationMs)},"attributes":` +
    attributes({
      "http.request.method": isKnown ? method : "_OTHER",
      "http.request.method_original": isKnown ? undefined : method.slice(0, MAX_LOGGED_METHOD_LENGTH),
      "http.response.status_code": status === ABORTED_RESPONSE.status ? undefined : status,
      "http.route": route,
      "url.scheme": isTls ? "https" : "http",
      "url.path": optional("path", request.path),
      "network.protocol.version": "1.1",
      "client.address": optional("address", request.clientAddress),
      "user_agent.original": optional("userAgent", request.userAgent),
      "error.type": status === ABORTED_RESPONSE.status ? "aborted" : status >= 500 ? `${status}` : undefined,
      "petstore.request.id": request.requestId,
      "petstore.key.id": keyId ?? undefined,
      "petstore.error.code": optional("errorCode", request.errorCode),
    }) +
    `${status >= 500 ? `,"status":{"code":${ERROR}}` : ""}}`;
  const parts = spans.map(
    ({ name, from, to = durationMs }, i) =>
      `,{"traceId":"${traceId}","spanId":"${idOf(i + 1)}","parentSpanId":"${spanId}",` +
      `"name":"${name}","kind":${INTERNAL},${between(from, to)}}`,
  );
  return server + parts.join("");
}

/** Returns JSON. An attribute that is undefined is left out. Integers are texts, as in every protobuf in JSON. */
function attributes(values: Readonly<Record<string, string | number | undefined>>): string {
  const members = Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const json =
      typeof value === "number"
        ? `{"intValue":"${value}"}`
        : `{"stringValue":${quotedWithoutSecrets(value)}}`;
    return `{"key":"${key}","value":${json}}`;
  });
  return `[${members.join(",")}]`;
}

/** A time in nanoseconds has more digits than a number. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${`${Math.floor((ms - whole) * 1e6)}`.padStart(6, "0")}`;
}
