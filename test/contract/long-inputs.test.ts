import { expect, test } from "bun:test";
import type { Operation } from "../../src/api/api.ts";
import { ADMIN_OPERATIONS } from "../../src/operator/operations.ts";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { bearer } from "../bearer.ts";
import { TOKEN, useAdminService } from "../admin/admin-service.ts";
import { sendRaw } from "../http/raw.ts";

const service = await useAdminService();

const LONG = "Long".repeat(900);
/** No message repeats as much of a request. */
const REPEATED = LONG.slice(0, 80);
const HEADERS = [
  "Authorization",
  "Content-Type",
  "Content-Encoding",
  "Idempotency-Key",
  "If-Match",
  "Origin",
  "Cookie",
  "Accept",
  "X-Request-Id",
];

interface Input {
  readonly name: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Requests of an operation, each with one thing that is long. */
function* longInputs({ method, path, query, body }: Operation): Generator<Input> {
  // Nothing has this identifier, so that a valid request changes nothing that the next ones need.
  const ownPath = path.replace(/\{\w+\}/, "999999");
  yield { name: "the method", method: LONG, path: ownPath };
  yield { name: "the path", method, path: `${ownPath}/${LONG}` };
  if (path !== ownPath) yield { name: "the identifier", method, path: path.replace(/\{\w+\}/, LONG) };
  for (const name of [...Object.keys(query ?? {}), LONG])
    yield { name: `the parameter ${name.slice(0, 20)}`, method, path: `${ownPath}?${name}=${LONG}` };
  for (const name of method === "GET" || body ? HEADERS : ["Authorization"])
    yield { name, method, path: ownPath, headers: { [name]: LONG }, body: body && [] };
  if (body === undefined) return;
  yield { name: "the text of the body", method, path: ownPath, body: LONG };
  for (const name of [...body.names, LONG])
    for (const value of [LONG, [LONG], { [LONG]: LONG }])
      yield { name: `the field ${name.slice(0, 20)}`, method, path: ownPath, body: { [name]: value } };
}

interface Api {
  readonly readers: string;
  readonly url: () => string;
  readonly basePath: string;
  readonly secret: () => string;
  readonly operations: readonly Operation[];
}

const APIS: readonly Api[] = [
  {
    readers: "clients",
    url: () => service.url,
    basePath: "/v1",
    secret: () => service.key,
    operations: Object.values(OPERATIONS),
  },
  {
    readers: "operators",
    url: () => service.adminUrl,
    basePath: "/api",
    secret: () => TOKEN,
    operations: Object.values(ADMIN_OPERATIONS),
  },
];

test.each(APIS)(
  "no error for $readers repeats what is long in a request",
  async ({ url, basePath, secret, operations }) => {
    const repeating: string[] = [];
    let errors = 0;
    for (const operation of operations) {
      for (const { name, method = "GET", path = "", headers = {}, body } of longInputs(operation)) {
        const text = body === undefined ? "" : JSON.stringify(body);
        const all = {
          Host: "localhost",
          ...bearer(secret()),
          "Content-Type": "application/json",
          ...headers,
        };
        const lines = Object.entries({ ...all, Connection: "close", "Content-Length": `${text.length}` });
        const head = [`${method} ${basePath}${path} HTTP/1.1`, ...lines.map((line) => line.join(": "))];
        const response = await sendRaw(url(), `${head.join("\r\n")}\r\n\r\n${text}`);
        const [, status = ""] = /^HTTP\/1\.1 (\d+)/.exec(response) ?? [];
        if (Number(status) < 400) continue;
        errors++;
        if (response.includes(REPEATED)) repeating.push(`${operation.method} ${operation.path}: ${name}`);
      }
    }
    expect(repeating).toEqual([]);
    expect(errors).toBeGreaterThan(operations.length * 5);
  },
);
