import { PAGE_LIMIT } from "../constants.ts";
import { ERRORS, PROTOCOL_ERRORS } from "../errors.ts";
import type { Operation } from "../operations.ts";
import type { JsonSchema, Schema } from "../schema.ts";
import { NewOrder, NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "../resources.ts";

const NAMED = { Pet, NewPet, PetStatus, Order, NewOrder, OrderUpdate, OrderStatus };
const NAMES = new Map<unknown, string>(Object.entries(NAMED).map(([name, schema]) => [schema.json, name]));

const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

/** A named schema is always a reference, also where another schema embeds it. */
export function schemaRef({ json }: Schema<unknown>): JsonSchema {
  const name = NAMES.get(json);
  return name === undefined ? json : ref(name);
}

export function successSchema({ body, of }: Operation["success"]): JsonSchema {
  if (body === "one") return schemaRef(of);
  return ref(of === Pet ? "Pets" : "Orders");
}

function withRefs(schema: JsonSchema): JsonSchema {
  if (typeof schema["properties"] !== "object" || schema["properties"] === null) return schema;
  const properties = Object.entries(schema["properties"]).map(([field, json]) => {
    const name = NAMES.get(json);
    return [field, name === undefined ? json : ref(name)];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

const errors = Object.entries({ ...ERRORS, ...PROTOCOL_ERRORS });
const codes = errors.map(([code]) => code);
const statuses = [...new Set(errors.map(([, { status }]) => status))].toSorted((a, b) => a - b);

/** The name does not shadow `Error` in the code that generators make. */
const ApiError: JsonSchema = {
  type: "object",
  description: "An error. `code` is for programs, `message` for people.",
  required: ["code", "message", "status"],
  properties: {
    code: { type: "string", enum: codes, description: "Machine-readable error code, one of a closed set" },
    message: { type: "string", minLength: 1, description: "Human-readable description" },
    status: { type: "integer", enum: statuses, description: "The HTTP status code" },
  },
  additionalProperties: false,
};

export const SCHEMAS: JsonSchema = {
  ...Object.fromEntries(Object.entries(NAMED).map(([name, { json }]) => [name, withRefs(json)])),
  Pets: pageOf("Pet", "A page of pets, in ascending order of their identifiers."),
  Orders: pageOf("Order", "A page of orders, in ascending order of their identifiers."),
  ApiError,
};

function pageOf(name: string, description: string): JsonSchema {
  return { type: "array", items: ref(name), maxItems: PAGE_LIMIT.max, description };
}

/** The ApiError of one status, restricted to its codes. */
export function errorSchema(status: number, allowed: readonly string[]): JsonSchema {
  const restriction = { properties: { code: { enum: allowed }, status: { const: status } } };
  return { allOf: [ref("ApiError"), restriction] };
}
