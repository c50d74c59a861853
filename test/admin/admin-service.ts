import { createSignInUrl } from "../../src/operator/sign-in/code.ts";
import { afterAll, expect } from "bun:test";
import type { AdminConfig } from "../../src/config/config.ts";
import type { Role } from "../../src/domain/operators.ts";
import { silentLog } from "../../src/observe/log.ts";
import type { OperatorRate } from "../../src/operator/operator-rates.ts";
import { bearer } from "../bearer.ts";
import { parseJson } from "../exact-json.ts";
import { type Service, startService, type TestConfig } from "../service.ts";
import { expectAdminConforms } from "../conforms.ts";

export const TOKEN = "test-token-of-the-operators";

export interface AdminRequest {
  readonly method?: string;
  /** The path as it is sent: most begin with `/api`. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** Another token, or null for none. */
  readonly token?: string | null;
}

export interface AdminResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed with exact integers; an empty object if there is no JSON. */
  readonly json: Record<string, unknown>;
}

/** The whole service with a listener for operators on a free port. */
export interface AdminService extends Service {
  readonly adminUrl: string;
  /**
   * Sends a request and compares the response with the OpenAPI document of the admin API. As a text it is the method,
   * unless that is GET, and the path.
   */
  admin(request: AdminRequest | string, rest?: Partial<AdminRequest>): Promise<AdminResponse>;
  /** Does what `admin` does, and fails unless the status is 2xx. */
  ok(request: AdminRequest | string, rest?: Partial<AdminRequest>): Promise<Record<string, unknown>>;
  /** Creates an operator, whose name is new unless one is given. */
  newOperator(role: Role, fields?: object): Promise<NewOperator>;
  /** Sends a token or a code, as the sign-in of the console does. */
  signIn(body: object, headers?: Record<string, string>): Promise<AdminResponse>;
}

/** The response to a created operator. */
export interface NewOperator {
  readonly operator: { readonly id: number; readonly name: string };
  readonly token: string;
}

/** The cookie that a response sets. */
export const cookieOf = (headers: Headers) => (headers.get("set-cookie") ?? "").split(";")[0] ?? "";

/** What a page that has signed in sends. */
export const sessionOf = ({ headers, json }: Pick<AdminResponse, "headers" | "json">) => ({
  Cookie: cookieOf(headers),
  "Petstore-Session": String(json["secret"]),
});

/** A code with which an operator signs in, by default the first admin, as `petstore admin-url` makes it. */
export async function codeOf({ app, clock }: Service, operator?: string): Promise<string> {
  const { operators } = app;
  const url = await createSignInUrl({ url: "", operators, clock, operator, madeBy: "admin-url (root)" });
  return String(url).replace("/?code=", "");
}

export const ADMIN_CONFIG: AdminConfig = {
  host: "127.0.0.1",
  port: 0,
  isDefault: false,
  hostnames: [],
  token: TOKEN,
  tokenFile: undefined,
  metricsTokenFile: undefined,
  areMetricsPublic: false,
  provider: undefined,
};

export async function startAdminService(
  admin: Partial<AdminConfig> = {},
  config: TestConfig = {},
  operatorRate?: OperatorRate,
  log = silentLog,
): Promise<AdminService> {
  const settings = { ...config, admin: { ...ADMIN_CONFIG, ...admin } };
  const service = await startService(settings, log, operatorRate);
  const send: AdminService["admin"] = (request, rest = {}) => {
    const url = service.app.admin?.url ?? "";
    if (typeof request !== "string") return sendAdmin(url, request);
    const [path = "", method = "GET"] = request.split(" ").toReversed();
    return sendAdmin(url, { method, path, ...rest });
  };
  const ok: AdminService["ok"] = async (request, rest) => {
    const { status, text, json } = await send(request, rest);
    expect(status < 300 ? "" : `${Bun.inspect(request)}: ${status} ${text}`).toBe("");
    return json;
  };
  let operators = 0;
  return {
    ...service,
    get app() {
      return service.app;
    },
    get url() {
      return service.url;
    },
    get adminUrl() {
      return service.app.admin?.url ?? "";
    },
    admin: send,
    ok,
    async newOperator(role, fields) {
      const body = { name: `${role}-${++operators}`, role, ...fields };
      return Object(await ok("POST /api/operators", { body }));
    },
    signIn: (body, headers = {}) => send("POST /api/session", { token: null, body, headers }),
  };
}

/** Runs for the tests of the file that calls this. */
export async function useAdminService(...settings: Parameters<typeof startAdminService>) {
  const service = await startAdminService(...settings);
  afterAll(() => service.stop());
  return service;
}

export async function sendAdmin(url: string, request: AdminRequest): Promise<AdminResponse> {
  const { method = "GET", path, body, token = TOKEN } = request;
  const headers = new Headers(token === null ? {} : bearer(token));
  if (body !== undefined) headers.set("Content-Type", "application/json");
  for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
  const response = await fetch(url + path, {
    method,
    headers,
    redirect: "manual",
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const { status, headers: received } = response;
  expectAdminConforms({ method, path }, { status, headers: received, text });
  const isJson = received.get("content-type") === "application/json" && text !== "";
  return { status, headers: received, text, json: isJson ? Object(parseJson(text)) : {} };
}
