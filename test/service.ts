import { afterAll } from "bun:test";
import { type App, startApp } from "../src/app.ts";
import type { Config } from "../src/config/config.ts";
import { bearer } from "./bearer.ts";
import { parseJson } from "./exact-json.ts";
import type { NewKey } from "../src/domain/api-keys.ts";
import type { Environment } from "../src/domain/environments.ts";
import { generateSecret, toNewSecret } from "../src/domain/secrets.ts";
import type { PolicyChange } from "../src/domain/policy.ts";
import type { KeyStore } from "../src/domain/ports/keys.ts";
import { silentLog } from "../src/observe/log.ts";
import type { OperatorRate } from "../src/operator/operator-rates.ts";
import { parseConfig } from "./config/parsing.ts";
import { expectConforms } from "./conforms.ts";
import { disposableDirectory } from "./disposable-directory.ts";
import { TestClock } from "./test-clock.ts";
import { BY } from "./key-store-arguments.ts";
import { storePolicyIn } from "../trials/harness/policy.ts";

export { TestClock };

export interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed with exact integers; undefined if there is no body. */
  readonly json: unknown;
}

export interface ApiRequest {
  readonly method?: string;
  readonly path: string;
  /** A string, bytes or a stream as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** Another key, or null for none. */
  readonly key?: string | null;
}

/** The whole service on a free port with its own data directory, and a key that is never rate limited. */
export interface Service extends AsyncDisposable {
  readonly app: App;
  readonly url: string;
  readonly dataDir: string;
  readonly key: string;
  readonly clock: TestClock;
  /** Sends a request and compares the response with the OpenAPI document. */
  call(call: ApiRequest): Promise<ApiResponse>;
  /** Calls with POST and a body. */
  post(path: string, body: unknown, rest?: Partial<ApiRequest>): Promise<ApiResponse>;
  /** The identifier of a new pet. */
  newPet(): Promise<number>;
  newKey(key?: Partial<NewKey>): Promise<{ id: number; secret: string }>;
  /** Another secret of a key; the ones before are valid until then. */
  newSecret(keyId: number, overlapEndsAt: number): Promise<string>;
  /** Restarts with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** The identifier of the resource in a response. */
export const idOf = ({ json }: Pick<ApiResponse, "json">) => (json as { id: number }).id;
export const remainingOf = ({ headers }: Pick<ApiResponse, "headers">) =>
  Number(headers.get("x-ratelimit-remaining"));

export const NO_LIMITS = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };

/** A webhook that no test has an event for. */
export const IDLE_WEBHOOK: Config["webhook"] = {
  url: "http://127.0.0.1:1/",
  secrets: [new Uint8Array(32)],
  events: ["data.restored"],
};

/** What a test sets. The data are in a directory that it may not know. */
export type TestConfig = Partial<Omit<Config, "data">> & {
  readonly environment?: Environment;
  readonly databaseUrl?: string;
};

/** The defaults, on a free port, without a listener for operators. */
export function configIn(dataDir: string, given: TestConfig = {}): Config {
  const { environment = "production", databaseUrl, ...others } = given;
  const parsed = parseConfig({
    data: [dataDir],
    env: [environment],
    ...(databaseUrl !== undefined && { "database-url": [databaseUrl] }),
    port: ["0"],
    "admin-address": ["off"],
    "max-connections-per-address": ["0"],
    "request-log": ["1MB"],
  });
  return { ...parsed, ...others };
}

/** No test exceeds it. */
const NO_RATE: OperatorRate = { max: Infinity, perSecond: 1 };

/** The configuration of a service, and what is stored before it starts. */
export type ServiceConfig = TestConfig & { readonly policy?: PolicyChange };

export async function startService(
  { policy, ...config }: ServiceConfig = {},
  log = silentLog,
  operatorRate = NO_RATE,
): Promise<Service> {
  const { directory: dataDir, remove } = disposableDirectory();
  const clock = new TestClock();
  const settings = configIn(dataDir, config);
  const { environment } = settings.data;
  const options = { clock, log, operatorRate };
  if (policy !== undefined) await storePolicyIn(settings.data, policy);
  let app = await startApp(settings, options);

  const newKey = (key: Partial<NewKey> = {}) =>
    addKey(app.keys, { createdAt: clock.now(), ...key }, environment);
  const { secret: key } = await newKey();
  const call = (request: ApiRequest) => send(app.url, request, key);
  const post: Service["post"] = (path, body, rest) => call({ method: "POST", path, body, ...rest });

  async function stop() {
    await app.close();
    remove();
  }

  return {
    get app() {
      return app;
    },
    get url() {
      return app.url;
    },
    dataDir,
    key,
    clock,
    newKey,
    async newSecret(keyId, overlapEndsAt) {
      const secret = generateSecret(environment);
      const by = { ...BY, at: clock.now() };
      await app.keys.addSecret(keyId, { ...toNewSecret(secret), overlapEndsAt }, by);
      return secret;
    },
    call,
    post,
    newPet: async () => idOf(await post("/pets", { name: "Rex", categoryId: 1 })),
    async restart() {
      await app.close();
      app = await startApp(settings, options);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** A key that is never rate limited, unless it has other limits. */
export async function addKey(keys: KeyStore, key: Partial<NewKey>, environment: Environment = "production") {
  const secret = generateSecret(environment);
  const draft = { name: "test", plan: "enterprise", limits: NO_LIMITS, createdAt: 0, ...key } as const;
  const { id } = await keys.createKey(draft, toNewSecret(secret), { ...BY, at: draft.createdAt });
  return { id, secret };
}

/** Runs for the tests of the file that calls this. */
export async function useService(config: ServiceConfig = {}): Promise<Service> {
  const service = await startService(config);
  afterAll(() => service.stop());
  return service;
}

export async function send(url: string, call: ApiRequest, defaultKey: string): Promise<ApiResponse> {
  const { method = "GET", path, body, key = defaultKey } = call;
  const headers = new Headers(key === null ? {} : bearer(key));
  if (body !== undefined) headers.set("Content-Type", "application/json");
  for (const [name, value] of Object.entries(call.headers ?? {})) headers.set(name, value);
  const raw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  const response = await fetch(url + path, {
    method,
    headers,
    redirect: "manual",
    ...(body !== undefined && { body: raw ? (body as string) : JSON.stringify(body) }),
  });
  const text = await response.text();
  const { status, headers: received } = response;
  expectConforms({ method, path }, { status, headers: received, text });
  return { status, headers: received, text, json: text === "" ? undefined : parseJson(text) };
}
