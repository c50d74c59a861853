import type { Asking, Header } from "./wire.ts";

export const JSON_BODY: Header = ["Content-Type", "application/json"];

export function bearer(key: string): Header {
  return ["Authorization", `Bearer ${key}`];
}

export function listPets(key: string): Asking {
  return { method: "GET", path: "/v1/pets?limit=1", headers: [bearer(key)] };
}

export function createPet(key: string, name: string, idempotencyKey?: string): Asking {
  const repeatable: readonly Header[] =
    idempotencyKey === undefined ? [] : [["Idempotency-Key", idempotencyKey]];
  return {
    method: "POST",
    path: "/v1/pets",
    headers: [bearer(key), JSON_BODY, ...repeatable],
    body: JSON.stringify({ name, categoryId: 1 }),
  };
}
