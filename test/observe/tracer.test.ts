import { afterEach, describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { LogEventName } from "../../src/observe/log-events.ts";
import { collectorUrl } from "../../src/config/address-types.ts";
import { ratio } from "../../src/config/value-types.ts";
import { silentLog } from "../../src/observe/log.ts";
import { startService } from "../service.ts";
import { until } from "../timing.ts";

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
  const events: [LogEventName, unknown][] = [];
  const log = {
    ...silentLog,
    event: (name: LogEventName, details?: { requests?: number }) =>
      void events.push([name, details?.requests]),
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
    const { url, spans, paths } = startCollector([503, 400]);
    const { log, events } = recordedLog();
    const tracing = { url, sample: 1, exportEveryMs: 5 };
    const service = await startService({ tracing }, log);
    await service.call({ path: "/pets" });
    await until(() => events().length >= 2, 10_000);
    await service.call({ path: "/pets" });
    await service.stop();
    expect(paths.length).toBe(3);
    expect(events()).toEqual([
      ["tracing.failed", undefined],
      ["tracing.recovered", undefined],
      ["tracing.spans-dropped", 1],
    ]);
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined).length).toBe(1);
  });

  test("that is away costs nothing but the spans", async () => {
    const { log, events } = recordedLog();
    const service = await startService({ tracing: { url: "http://127.0.0.1:1/v1/traces", sample: 1 } }, log);
    expect((await service.call({ path: "/pets" })).status).toBe(200);
    await service.stop();
    expect(events()).toEqual([["tracing.failed", undefined]]);
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
