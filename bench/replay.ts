/*
 * Runs servers that repeat Petstore's responses from memory: `bun bench/replay.ts FILE`. Each workload of the file gets
 * a listener; the ports are printed as JSON.
 */

import { readFileSync } from "node:fs";
import type { HttpResponse } from "../trials/harness/http-connection.ts";
import type { RequestKind } from "./workloads.ts";

/** A response of Petstore. */
export type CapturedResponse = Pick<HttpResponse, "status" | "headers" | "body">;

type Route = "list" | "get" | "create";
type Routes = Readonly<Partial<Record<Route, CapturedResponse>>>;

/** The responses by workload. */
export type CapturedResponses = Readonly<Record<string, Routes>>;

export function routeOf(kind: RequestKind): Route {
  if (kind === "create") return "create";
  return kind === "get" || kind === "get-one" ? "get" : "list";
}

/** The headers that every server adds by itself. */
const AUTOMATIC = new Set(["date", "content-length", "connection", "keep-alive", "server"]);

export function capture({ status, rawHeaders, body }: HttpResponse): CapturedResponse {
  const headers = rawHeaders.filter(([name]) => !AUTOMATIC.has(name.toLowerCase()));
  return { status, body, headers: Object.fromEntries(headers) };
}

const NOT_FOUND: CapturedResponse = { status: 404, headers: {}, body: "" };

/**
 * Serves the bare route, which looks up, counts, validates and stores nothing. Each response has its headers as an
 * object, because their values differ from request to request in a real server. A create only parses its body.
 */
function listen({ list, get, create }: Routes) {
  const respond = ({ status, headers, body } = NOT_FOUND) => new Response(body, { status, headers });
  const POST = async (request: Request) => {
    await request.json();
    return respond(create);
  };
  const routes = {
    "/v1/pets": { GET: () => respond(list), POST },
    "/v1/pets/:petId": () => respond(get),
    "/*": () => respond(),
  };
  return Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, routes });
}

if (import.meta.main) {
  const [file = ""] = process.argv.slice(2);
  const responses: CapturedResponses = JSON.parse(readFileSync(file, "utf8"));
  const ports = Object.entries(responses).map(([workload, routes]) => [workload, listen(routes).port]);
  process.stdout.write(`${JSON.stringify(Object.fromEntries(ports))}\n`);
}
