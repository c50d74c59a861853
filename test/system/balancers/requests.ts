import type { Header, HttpRequest } from "../../../trials/harness/http-connection.ts";

export const JSON_BODY: Header = ["Content-Type", "application/json"];

export const bearer = (key: string): Header => ["Authorization", `Bearer ${key}`];

export const listPets = (key: string): HttpRequest => ({
  method: "GET",
  path: "/v1/pets?limit=1",
  headers: [bearer(key)],
});

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
