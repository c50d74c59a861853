import type { TryItField, TryItOperation } from "../../../src/docs-site/page-data.ts";

/** A field of a query unless told otherwise. */
export function field(fields: Partial<TryItField> & Pick<TryItField, "name">): TryItField {
  return {
    in: "query",
    anchor: fields.name,
    isRequired: false,
    description: "",
    type: "string",
    constraint: "",
    bounds: [],
    ...fields,
  };
}

const INT64 = { type: "int64", minimum: "-9223372036854775808", maximum: "9223372036854775807" } as const;

function operation(fields: Partial<TryItOperation>): TryItOperation {
  return {
    method: "GET",
    path: "/pets",
    fields: [],
    ...fields,
  };
}

export const limit = field({ name: "limit", type: "integer", minimum: "1", maximum: "100" });
export const ids = field({ name: "id", ...INT64, type: "int64-list" });
export const petId = field({ name: "petId", in: "path", isRequired: true, ...INT64 });
export const name = field({ name: "name", in: "body", isRequired: true, minLength: 1, maxLength: 1_024 });
export const categoryId = field({ name: "categoryId", in: "body", isRequired: true, ...INT64 });
export const status = field({ name: "status", values: ["available", "pending", "sold"] });
export const idempotencyKey = field({ name: "Idempotency-Key", in: "header", maxLength: 257 });

export const listPets = operation({ fields: [limit, status, ids] });
export const getPet = operation({ path: "/pets/{petId}", fields: [petId] });
export const createPet = operation({
  method: "POST",
  fields: [idempotencyKey, name, categoryId, { ...status, in: "body" }],
});
