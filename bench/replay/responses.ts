import { readFileSync } from "node:fs";
import type { HttpResponse } from "../../harness/http-connection.ts";
import type { RequestKind } from "../workloads.ts";

/** A response of Petstore, for the servers that only repeat it. */
export interface CapturedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Route = "list" | "get" | "create";
type Routes = Readonly<Partial<Record<Route, CapturedResponse>>>;

/** By workload. */
export type CapturedResponses = Readonly<Record<string, Routes>>;

export function routeOf(kind: RequestKind): Route {
  if (kind === "create") return "create";
  return kind === "get" || kind === "get-one" ? "get" : "list";
}

/** Headers that every server adds by itself. */
const AUTOMATIC = new Set(["date", "content-length", "connection", "keep-alive", "server"]);

export function capture({ status, rawHeaders, body }: HttpResponse): CapturedResponse {
  const headers = rawHeaders.filter(([name]) => !AUTOMATIC.has(name.toLowerCase()));
  return { status, body, headers: Object.fromEntries(headers) };
}

/** Starts a listener for each workload of the file in argv, and prints the ports as JSON: {"WORKLOAD": PORT, …}. */
export function replay(listen: (routes: Routes) => { readonly port: number | undefined }): void {
  const responses: CapturedResponses = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
  const ports = Object.entries(responses).map(([workload, routes]) => [workload, listen(routes).port]);
  process.stdout.write(`${JSON.stringify(Object.fromEntries(ports))}\n`);
}
