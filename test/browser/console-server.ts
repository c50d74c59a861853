import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { Child } from "../../trials/harness/child.ts";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { PETSTORE, runPetstore } from "../../trials/harness/petstore.ts";
import { freePort } from "../../trials/harness/server.ts";
import { parseJson } from "../exact-json.ts";

export const TOKEN = "petadmin_0123456789abcdefghijklmnopqrstuvwxyz";

export interface JsonResponse {
  readonly status: number;
  readonly json: unknown;
}

/** A server with an admin listener, in a process of its own, so that it can be stopped and started again. */
export class ConsoleServer {
  readonly adminUrl: string;
  readonly apiUrl: string;
  readonly #command: readonly string[];
  readonly #data: string;
  #child: Child | undefined;

  private constructor(adminPort: number, apiPort: number, flags: readonly string[]) {
    this.adminUrl = `http://127.0.0.1:${adminPort}`;
    this.apiUrl = `http://127.0.0.1:${apiPort}/v1`;
    const data = temporaryFolder("data");
    this.#data = data;
    const tokenFile = join(data, "token");
    writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
    const addresses = ["--port", `${apiPort}`, "--admin-address", `127.0.0.1:${adminPort}`];
    const files = ["--data", data, "--admin-token-file", tokenFile];
    this.#command = [...PETSTORE, "serve", ...addresses, ...files, ...flags];
  }

  static async start(flags: readonly string[] = []): Promise<ConsoleServer> {
    const server = new ConsoleServer(freePort(), freePort(), flags);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    this.#child = new Child(this.#command);
    await this.#child.line(/http\S+\/v1$/);
  }

  async stop(signal?: NodeJS.Signals): Promise<void> {
    await this.#child?.stop(signal);
    this.#child = undefined;
  }

  /** The URL of a page with a code, as `petstore admin-url` prints it. */
  async signInUrl(path = "/", operator = "token"): Promise<string> {
    const { out, err } = await runPetstore("admin-url", "--data", this.#data, "--operator", operator);
    const code = /code=\w+/.exec(out)?.[0];
    if (code === undefined) throw new Error(err);
    return `${this.adminUrl}${path}${path.includes("?") ? "&" : "?"}${code}`;
  }

  /** The token of a new operator. */
  async newOperator(name: string, role: string): Promise<string> {
    const { json } = await this.admin("POST", "/operators", { name, role });
    return isObject(json) ? String(json["token"]) : "";
  }

  /** The admin API, as a program calls it. */
  admin(method: string, path: string, body?: unknown): Promise<JsonResponse> {
    return send(`${this.adminUrl}/api${path}`, { method, token: TOKEN, body });
  }

  /** The API, as a client calls it. */
  client(secret: string, method: string, path: string, body?: unknown): Promise<JsonResponse> {
    return send(this.apiUrl + path, { method, token: secret, body });
  }

  /** A key of the given fields, with its secret. */
  async newKey(fields: Readonly<Record<string, unknown>>): Promise<{ id: number; secret: string }> {
    const { status, json } = await this.admin("POST", "/keys", { plan: "business", ...fields });
    if (status !== 201 || !isObject(json) || !isObject(json.key))
      throw new Error(`createKey: ${status} ${String(json)}`);
    return { id: Number(json.key.id), secret: String(json.secret) };
  }
}

interface SendOptions {
  readonly method: string;
  readonly token: string;
  readonly body: unknown;
}

async function send(url: string, { method, token, body }: SendOptions): Promise<JsonResponse> {
  const headers = new Headers({ Authorization: `Bearer ${token}` });
  if (body !== undefined) headers.set("Content-Type", "application/json");
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body: text }) });
  const received = await response.text();
  return { status: response.status, json: received === "" ? undefined : parseJson(received) };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Waits until the address bar has the path and query. */
export async function untilAt(page: Page, expected: string): Promise<void> {
  await page.waitForURL(({ pathname, search }) => pathname + search === expected);
}
