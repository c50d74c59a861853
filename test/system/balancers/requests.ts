import type { Fleet } from "../../../trials/harness/fleet.ts";
import type { Header, HttpRequest } from "../../../trials/harness/http-connection.ts";
import type { LoadBalancer } from "../../../trials/harness/load-balancer.ts";

/** Three servers on one PostgreSQL and one Valkey, behind a load balancer. */
export interface Setup {
  readonly fleet: Fleet;
  readonly balancer: LoadBalancer;
  /** An API key whose limits are never reached. */
  readonly key: string;
}

export const PUBLIC_URL = "https://api.example.com/v1";
export const JSON_BODY: Header = ["Content-Type", "application/json"];

export function bearer(key: string): Header {
  return ["Authorization", `Bearer ${key}`];
}

export function listPets(key: string): HttpRequest {
  return { method: "GET", path: "/v1/pets?limit=1", headers: [bearer(key)] };
}

export function createPet(key: string, name: string, idempotencyKey?: string): HttpRequest {
  const idempotency: readonly Header[] =
    idempotencyKey === undefined ? [] : [["Idempotency-Key", idempotencyKey]];
  return {
    method: "POST",
    path: "/v1/pets",
    headers: [bearer(key), JSON_BODY, ...idempotency],
    body: JSON.stringify({ name, categoryId: 1 }),
  };
}
