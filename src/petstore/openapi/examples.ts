import type { DocumentedSettings } from "../../public/documented-settings.ts";
import { operationRemoved } from "../deprecation.ts";
import { type ErrorCode, ERRORS } from "../errors.ts";
import {
  BODY_TOO_LARGE,
  keyBanned,
  NOT_FOUND,
  rateLimited,
  READ_ONLY_KEY,
  UNAUTHENTICATED,
} from "../../public/errors.ts";
import { IDEMPOTENCY_CONFLICT, IDEMPOTENCY_KEY_REUSED } from "../../domain/idempotency.ts";
import {
  NewPet,
  type Order,
  orderClosed,
  orderNotFound,
  Pet,
  petNotAvailable,
  petNotFound,
  preconditionFailed,
} from "../../domain/pets-and-orders.ts";
import {
  INTERNAL_ERROR,
  invalidJson,
  methodNotAllowed,
  Rejection,
  serviceUnavailable,
  UNSUPPORTED_MEDIA_TYPE,
} from "../../api/errors.ts";
import type { CallerKey } from "../caller-key.ts";
import { OPERATIONS, PETSTORE_API, type PetstoreInput } from "../operations.ts";
import type { OperationId } from "../../domain/operation-ids.ts";
import type { SuccessBodyOf } from "../../api/api.ts";
import { readBody, readQuery } from "../../api/dispatch.ts";
import { Invalid, type JsonSchema, type ObjectSchema } from "../../api/schema.ts";

interface Example<T> {
  readonly summary: string;
  readonly value: T;
}
function example<const T>(summary: string, value: T): Example<T> {
  return { summary, value };
}
type Examples<T> = Readonly<Record<string, Example<T>>>;

type ExamplesOf<Id extends OperationId> = {
  readonly success: Examples<SuccessBodyOf<(typeof OPERATIONS)[Id]>>;
} & (undefined extends PetstoreInput<Id>["body"]
  ? { readonly request?: never }
  : { readonly request: Examples<PetstoreInput<Id>["body"]> });

/** A pet with every field. */
export const rex = exampleOf(Pet);
const newRex = exampleOf(NewPet);
const mia: Pet = { id: 2n, name: "Mia", categoryId: 9_007_199_254_740_993n };
const placed: Order = { id: 1n, petId: 1n, status: "placed", createdAt: "2026-11-15T09:30:00.000Z" };

const key: CallerKey = {
  id: 7n,
  name: "mobile app",
  plan: "free",
  access: "write",
  expiresAt: null,
  minute: { limit: 60, remaining: 59, resetAt: "2026-11-15T09:31:00.000Z" },
  day: { limit: 1_000, remaining: 964, resetAt: "2026-11-16T07:12:40.000Z" },
};

/** What lists of these operations are filtered for in examples. */
export const FILTERED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  Pets: rex,
  Orders: placed,
};

/** The examples of all operations. The type requires examples for each operation, with the right types. */
export const EXAMPLES: { readonly [Id in OperationId]: ExamplesOf<Id> } = {
  listPets: {
    success: {
      page: example("Two pets, the second without a status", [rex, mia]),
      empty: example("No pet matches the filter", []),
    },
  },
  createPet: {
    request: {
      available: example("A pet that can be ordered", newRex),
      minimal: example("Only the required fields, with an identifier that a double would round", {
        name: "Mia",
        categoryId: 9_007_199_254_740_993n,
      }),
    },
    success: {
      available: example("The pet with its identifier", rex),
      minimal: example("A pet that was created without a status has none", mia),
    },
  },
  getPet: {
    success: { pet: example("An available pet", rex) },
  },
  listOrders: {
    success: {
      page: example("One order", [placed]),
      empty: example("No order matches the filter", []),
    },
  },
  placeOrder: {
    request: { order: example("Order pet 1", { petId: 1n }) },
    success: { placed: example("The order; pet 1 is now pending", placed) },
  },
  getOrder: {
    success: { order: example("An order that is neither completed nor cancelled", placed) },
  },
  updateOrder: {
    request: {
      complete: example("Complete the order", { status: "completed" }),
      cancel: example("Cancel the order", { status: "cancelled" }),
    },
    success: {
      completed: example("Pet 1 is now sold", { ...placed, status: "completed" }),
      cancelled: example("Pet 1 is available again", { ...placed, status: "cancelled" }),
    },
  },
  getKey: {
    success: { key: example("A key of the Free plan after its first request of the minute", key) },
  },
};

/** The value of `Allow` for the path of listPets. */
export const ALLOWED_EXAMPLE = PETSTORE_API.find(`${PETSTORE_API.basePath}/pets`)?.route.allowed ?? "";

/** The rejections, built by the functions that the server calls. */
const REJECTIONS: { readonly [C in Exclude<ErrorCode, "key_banned">]: Rejection<C> } = {
  invalid_json: invalidJson({ line: 1, column: 16 }),
  invalid_body: rejectionOf(readBody({ name: "Rex", categoryId: "7" }, NewPet)),
  invalid_parameter: rejectionOf(readQuery("limit=0", OPERATIONS.listPets.query)),
  missing_api_key: UNAUTHENTICATED.missing_api_key,
  invalid_api_key: UNAUTHENTICATED.invalid_api_key,
  read_only_key: READ_ONLY_KEY,
  not_found: NOT_FOUND,
  pet_not_found: petNotFound(42n),
  order_not_found: orderNotFound(42n),
  method_not_allowed: methodNotAllowed("DELETE", ALLOWED_EXAMPLE),
  pet_not_available: petNotAvailable(1n, "pending"),
  order_closed: orderClosed(1n, "completed"),
  idempotency_conflict: IDEMPOTENCY_CONFLICT,
  operation_removed: operationRemoved(OPERATIONS.getPet.deprecated),
  precondition_failed: preconditionFailed(1n),
  body_too_large: BODY_TOO_LARGE,
  unsupported_media_type: UNSUPPORTED_MEDIA_TYPE,
  idempotency_key_reused: IDEMPOTENCY_KEY_REUSED,
  rate_limited: rateLimited("minute", { limit: 60, strikes: 0 }, 12),
  internal_error: INTERNAL_ERROR,
  unavailable: serviceUnavailable(1),
};

export function errorExample(code: ErrorCode, settings: DocumentedSettings): JsonSchema {
  const { status, meaning } = ERRORS[code];
  const { message } = exampleRejection(code, settings);
  return { summary: meaning, value: { code, message, status } };
}

/** The `Retry-After` of an error, which its message names, too. */
export function retryAfterExample(code: ErrorCode, settings: DocumentedSettings): JsonSchema {
  return { value: exampleRejection(code, settings).retryAfterSeconds };
}

function exampleRejection(code: ErrorCode, { policy }: DocumentedSettings): Rejection {
  return code === "key_banned" ? keyBanned(Math.ceil(policy.current.ban.lengthMs / 1000)) : REJECTIONS[code];
}

/** Returns an object with every field, whose values are the first examples or choices of the schemas. */
function exampleOf<T>({ required, optional, read }: ObjectSchema<T>): Required<T> {
  const values = Object.entries({ ...required, ...optional }).map(([name, { json }]) => {
    const listed = json["examples"] ?? json["enum"];
    return [name, Array.isArray(listed) ? listed[0] : undefined];
  });
  const example = read(Object.fromEntries(values));
  if (example instanceof Invalid) throw new Error(`no example: ${JSON.stringify(example.problems)}`);
  // Every field has a value.
  return example as Required<T>;
}

function rejectionOf<C extends string>(result: object | Rejection<C>): Rejection<C> {
  if (result instanceof Rejection) return result;
  throw new Error("the example of an invalid value is valid");
}
