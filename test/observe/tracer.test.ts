import { afterEach, describe, expect, jest, spyOn, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { LogEventName } from "../../src/observe/log-events.ts";
import { collectorUrl } from "../../src/config/address-types.ts";
import { ratio } from "../../src/config/value-types.ts";
import { silentLog } from "../../src/observe/log.ts";
import { RequestRecord } from "../../src/observe/request-record.ts";
import { Tracer } from "../../src/observe/tracer.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import type { Request, Response } from "../../src/http1/index.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { advance, settle } from "../fake-timers.ts";
import { startService } from "../service.ts";
import { until } from "../timing.ts";
import { metricsOf } from "./parse-metrics.ts";

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

const hex = (digits: number) => ({ type: "string", pattern: `^[0-9a-f]{${digits}}$` });
const nanoseconds = { type: "string", pattern: "^[0-9]{19}$" };
const object = (properties: Record<string, object>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const text = { type: "string" };
const arrayOf = (items: object) => ({ type: "array", items, minItems: 1 });
const attributes = arrayOf(
  object({
    key: { type: "string", minLength: 1 },
    value: { oneOf: [object({ stringValue: text }), object({ intValue: { ...text, pattern: "^\\d+$" } })] },
  }),
);

/** ExportTraceServiceRequest in opentelemetry-proto 1.5.0, as its JSON encoding has it: identifiers in hexadecimal. */
const isExport = new Ajv2020().compile<ExportRequest>(
  object({
    resourceSpans: arrayOf(
      object({
        resource: object({ attributes }),
        scopeSpans: arrayOf(
          object({
            scope: object({ name: text, version: text }),
            spans: arrayOf(
              object(
                {
                  traceId: hex(32),
                  spanId: hex(16),
                  parentSpanId: hex(16),
                  name: text,
                  kind: { enum: [1, 2] },
                  startTimeUnixNano: nanoseconds,
                  endTimeUnixNano: nanoseconds,
                  attributes,
                  status: object({ code: { const: 2 } }),
                },
                ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"],
              ),
            ),
          }),
        ),
      }),
    ),
  }),
);

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly Attribute[];
  readonly status?: { readonly code: number };
}

const valuesOf = (list: readonly Attribute[] = []) =>
  Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));

let stop = () => {};
afterEach(() => stop());

/** Takes spans, and responds with these statuses first. */
function startCollector(statuses: number[] = []) {
  const spans: Span[] = [];
  const resources: Record<string, unknown>[] = [];
  const paths: string[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      paths.push(new URL(request.url).pathname);
      const body = await request.json();
      if (!isExport(body)) throw new Error(JSON.stringify(isExport.errors));
      const status = statuses.shift() ?? 200;
      if (status === 200)
        for (const { resource, scopeSpans } of body.resourceSpans) {
          resources.push(valuesOf(resource.attributes));
          spans.push(...scopeSpans.flatMap((each) => each.spans));
        }
      return Response.json({}, { status });
    },
  });
  stop = () => void server.stop(true);
  return { url: `http://127.0.0.1:${server.port}/v1/traces`, spans, resources, paths };
}

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";

function recordedLog() {
  const events: [LogEventName, ...unknown[]][] = [];
  const log = {
    ...silentLog,
    event: (name: LogEventName, details: { requests?: number; error?: unknown } = {}) =>
      void events.push([name, details.requests, details.error]),
  };
  return { log, events: () => events.filter(([name]) => name.startsWith("tracing.")) };
}

describe("a traced request", () => {
  test("has a span with the attributes of an HTTP server, and one for each part", async () => {
    const { url, spans, resources, paths } = startCollector();
    const service = await startService({ tracing: { url, sample: 0 } });
    const headers = {
      traceparent: `00-${TRACE}-${PARENT}-01`,
      "X-Request-Id": "mine",
      "User-Agent": "shop/1.0",
    };
    await service.post("/pets", { name: "Rex", categoryId: 1 }, { headers });
    await service.stop();

    expect(paths).toEqual(["/v1/traces"]);
    expect(resources[0]).toMatchObject({
      "service.name": "petstore",
      "deployment.environment.name": "production",
    });
    const [server, ...parts] = spans;
    expect(server).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, name: "POST /v1/pets" });
    expect(valuesOf(server?.attributes)).toEqual({
      "http.request.method": "POST",
      "http.response.status_code": 201,
      "http.route": "/v1/pets",
      "url.scheme": "http",
      "url.path": "/v1/pets",
      "network.protocol.version": "1.1",
      "client.address": "127.0.0.1",
      "user_agent.original": "shop/1.0",
      "petstore.request.id": "mine",
      "petstore.key.id": 1,
    });
    expect(parts.map(({ name }) => name)).toEqual(["authentication", "rate limit", "store"]);
    for (const part of parts) {
      expect(part).toMatchObject({ traceId: TRACE, parentSpanId: server?.spanId });
      expect(BigInt(part.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(server?.startTimeUnixNano ?? 0));
      expect(BigInt(part.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(part.startTimeUnixNano));
    }
  });

  test("has the path without secrets and query, a method of any name, and an error's code", async () => {
    const { url, spans } = startCollector();
    const service = await startService({ tracing: { url, sample: 1 }, accessLogOmit: ["address"] });
    await fetch(new URL(`/nothing/${service.key}?token=secret`, service.url), { method: "PROPFIND" });
    await service.call({ path: "/pets/2" });
    await service.stop();

    const servers = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(servers.map(({ name }) => name)).toEqual(["HTTP", "GET /v1/pets/{petId}"]);
    expect(valuesOf(servers[0]?.attributes)).toMatchObject({
      "http.request.method": "_OTHER",
      "http.request.method_original": "PROPFIND",
      "url.path": expect.stringMatching(/^\/nothing\/pet_live_….*$/),
      "petstore.error.code": "not_found",
    });
    expect(JSON.stringify(spans)).not.toMatch(/secret|client\.address/);
    expect(servers[0]?.traceId).not.toBe(servers[1]?.traceId);
  });
});

test("the client's decision wins over the sample, and health checks are not traced", async () => {
  const { url, spans } = startCollector();
  const service = await startService({ tracing: { url, sample: 1 } });
  await service.call({ path: "/pets", headers: { traceparent: `00-${TRACE}-${PARENT}-00` } });
  await fetch(new URL("/healthz", service.url));
  await service.stop();
  expect(spans).toEqual([]);
});

describe("a collector", () => {
  test("that is overloaded gets the spans again, and one that rejects them does not", async () => {
    const { url, spans, paths } = startCollector([429, 502, 503, 504, 400]);
    const { log, events } = recordedLog();
    const tracing = { url, sample: 1, exportEveryMs: 5 };
    const service = await startService({ tracing }, log);
    await service.call({ path: "/pets" });
    await until(() => events().length >= 2, 10_000);
    await service.call({ path: "/pets" });
    await service.stop();
    expect(paths.length).toBe(6);
    expect(events()).toEqual([
      ["tracing.failed", undefined, new Error("the collector responded with 429")],
      ["tracing.recovered", undefined, undefined],
      ["tracing.spans-dropped", 1, new Error("the collector responded with 400")],
    ]);
    const counted = ["exported", "dropped"].map((result) =>
      metricsOf(service.app).value(`petstore_traced_requests_total{result="${result}"}`),
    );
    expect(counted).toEqual([1, 1]);
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined).length).toBe(1);
  });

  test("that is away costs nothing but the spans", async () => {
    const { log, events } = recordedLog();
    const service = await startService({ tracing: { url: "http://127.0.0.1:1/v1/traces", sample: 1 } }, log);
    expect((await service.call({ path: "/pets" })).status).toBe(200);
    await service.stop();
    expect(events()).toEqual([["tracing.failed", undefined, expect.any(Error)]]);
  });
});

describe("the spans of a tracer", () => {
  const START = Date.parse("2026-11-15T12:00:00Z");

  async function traced(responses: readonly Partial<Response>[], statuses: number[] = []) {
    const { url, spans, resources } = startCollector(statuses);
    const routes = new Map([["getPet", "/v1/pets/{petId}"]]);
    const options = { environment: "staging", serverId: "s1", isTls: true, omit: [], log: silentLog };
    const tracer = new Tracer({ ...options, url, routes, sample: 0.5 });
    {
      using now = spyOn(scheduler, "now");
      using time = spyOn(Date, "now");
      using random = spyOn(scheduler, "random");
      for (const response of responses) {
        const headers = HeaderFields.parse("");
        const request = { method: "GET", path: "/v1/pets/9", headers, clientAddress: "192.0.2.1" } as Request;
        random.mockReturnValue(0.5);
        expect(tracer.start(request)).toBeUndefined();
        random.mockReturnValue(0.49);
        now.mockReturnValue(10);
        time.mockReturnValue(START);
        const trace = tracer.start(request);
        const record = Object.assign(new RequestRecord(request, "id"), {
          trace,
          operation: "getPet",
          durationMs: 2.5,
        });
        now.mockReturnValue(10.25);
        trace?.begin("authentication");
        now.mockReturnValue(11.5);
        trace?.begin("store");
        now.mockReturnValue(12.031_25);
        tracer.observe(record, { status: 200, headerLines: "", body: "", ...response });
      }
    }
    await tracer.close();
    return { spans, resources, counts: tracer.counts };
  }

  test("have their times in nanoseconds, a kind and a parent, and the server is described once", async () => {
    const { spans, resources, counts } = await traced([{}]);
    expect(counts).toEqual({ exported: 1, dropped: 0 });
    expect(resources).toMatchObject([
      { "service.instance.id": "s1", "deployment.environment.name": "staging" },
    ]);
    const sinceStart = (time: string) => BigInt(time) - BigInt(START) * 1_000_000n;
    const shown = spans.map(({ name, kind, startTimeUnixNano, endTimeUnixNano }) => [
      name,
      kind,
      sinceStart(startTimeUnixNano),
      sinceStart(endTimeUnixNano),
    ]);
    expect(shown).toEqual([
      ["GET /v1/pets/{petId}", 2, 0n, 2_500_000n],
      ["authentication", 1, 250_000n, 1_500_000n],
      ["store", 1, 1_500_000n, 2_031_250n],
    ]);
    const [server, ...parts] = spans;
    expect(parts.map(({ parentSpanId }) => parentSpanId)).toEqual(parts.map(() => server?.spanId));
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(3);
    expect(valuesOf(server?.attributes)).toMatchObject({ "url.scheme": "https" });
  });

  test("say that a request has failed from 500 on, and that its client has gone", async () => {
    const { spans } = await traced(
      [399, 499, 500].map((status) => ({ status: status as Response["status"] })),
    );
    const servers = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
    const shown = servers.map(({ status, attributes }) => {
      const values = valuesOf(attributes);
      return [values["http.response.status_code"], values["error.type"], status?.code];
    });
    expect(shown).toEqual([
      [399, undefined, undefined],
      [undefined, "aborted", undefined],
      [500, "500", 2],
    ]);
  });

  test("are sent five seconds later", async () => {
    jest.useFakeTimers();
    const { url, paths } = startCollector();
    const options = { environment: "staging", serverId: "s1", isTls: true, omit: [], log: silentLog };
    const tracer = new Tracer({ ...options, url, routes: new Map(), sample: 1 });
    const request = { method: "GET", path: "/", headers: HeaderFields.parse("") } as Request;
    const record = Object.assign(new RequestRecord(request, "id"), { trace: tracer.start(request) });
    tracer.observe(record, { status: 200, headerLines: "", body: "" });
    await advance(4_999);
    expect(paths).toEqual([]);
    await advance(1);
    while (paths.length === 0) await settle();
    const closed = tracer.close();
    jest.useRealTimers();
    await closed;
    expect(tracer.counts).toEqual({ exported: 1, dropped: 0 });
  });

  test("are dropped, each counted, when the collector redirects", async () => {
    expect((await traced([{}, {}], [300])).counts).toEqual({ exported: 0, dropped: 2 });
  });
});

test.each([
  ["http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"],
  ["https://collector.example.com/otlp/v1/traces", "https://collector.example.com/otlp/v1/traces"],
  ["http://user:secret@127.0.0.1:4318", undefined],
  ["http://127.0.0.1:4318/v1/traces?token=secret", undefined],
  ["127.0.0.1:4318", undefined],
])("--otlp-url %s exports to %s", (text, url) => expect(collectorUrl.parse(text)).toBe(url));

test.each([
  ["0", 0],
  ["0.01", 0.01],
  ["1", 1],
  ["1.5", undefined],
  ["-0.1", undefined],
  ["1%", undefined],
])("--otlp-sample %s is %p", (text, share) => expect(ratio.parse(text)).toBe(share));
