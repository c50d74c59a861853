import { methodNotAllowed } from "../contract/errors.ts";
import { allowedMethods, BASE_PATH } from "../contract/operations.ts";
import type { Decision } from "../domain/rate-limit.ts";
import { headerLine, type Request, type Response } from "../http1/index.ts";
import type { Endpoint } from "./dispatch.ts";
import { emptyResponse, errorResponse, rateLimitLines } from "./responses.ts";

export interface Route {
  /** The path up to the identifier. */
  readonly prefix: string;
  /** By method; HEAD has the endpoint of GET. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  /** The value of `Allow`. */
  readonly allowed: string;
}

/** Whether a path is below the base path, whether or not a route exists. */
export function isApiPath(path: string): boolean {
  return path.startsWith(`${BASE_PATH}/`) || path === BASE_PATH;
}

const IDENTIFIER = /\{\w+\}$/;

/** Matches paths as the client sent them. Only the identifier at the end may be percent-encoded. */
export class Router {
  readonly #fixed = new Map<string, Route>();
  /** By the path up to the identifier. */
  readonly #withIdentifier = new Map<string, Route>();

  constructor(endpoints: readonly Endpoint[]) {
    for (const [path, group] of Map.groupBy(endpoints, ({ operation }) => operation.path)) {
      const routes = IDENTIFIER.test(path) ? this.#withIdentifier : this.#fixed;
      const prefix = BASE_PATH + path.replace(IDENTIFIER, "");
      routes.set(prefix, { prefix, endpoints: byMethod(group), allowed: allowedMethods(path) });
    }
  }

  find(path: string): Route | undefined {
    const end = path.lastIndexOf("/") + 1;
    return (
      this.#fixed.get(path) ?? (end < path.length ? this.#withIdentifier.get(path.slice(0, end)) : undefined)
    );
  }
}

function byMethod(endpoints: readonly Endpoint[]): ReadonlyMap<string, Endpoint> {
  const methods = new Map<string, Endpoint>(
    endpoints.map((endpoint) => [endpoint.operation.method, endpoint]),
  );
  const get = methods.get("GET");
  return get ? methods.set("HEAD", get) : methods;
}

/** A safe method changes nothing (RFC 9110), so a read-only key may use it. */
export function isSafeMethod(method: string): boolean {
  return method === "GET" || method === "HEAD" || method === "OPTIONS";
}

/** The identifier at the end of a path; empty if it cannot be decoded. */
export function identifierIn(path: string, { prefix }: Route): string {
  const text = path.slice(prefix.length);
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** OPTIONS, or a method that the path does not allow. */
export function otherMethodResponse({ method }: Request, { allowed }: Route, decision: Decision): Response {
  const headerLines = headerLine("Allow", allowed) + rateLimitLines(decision);
  if (method === "OPTIONS") return emptyResponse(204, headerLines);
  return errorResponse(methodNotAllowed(method, allowed), headerLines);
}
