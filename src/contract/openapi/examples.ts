import type { ErrorCode } from "../errors.ts";
import type { Input, OPERATIONS, OperationId } from "../operations.ts";
import type { Infer } from "../schema.ts";
import type { Order, Pet } from "../resources.ts";

interface Example<T> {
  readonly summary: string;
  readonly value: T;
}
type Examples<T> = Readonly<Record<string, Example<T>>>;

type Success<Id extends OperationId> = (typeof OPERATIONS)[Id]["success"] extends {
  body: "list";
  of: infer S;
}
  ? readonly Infer<S>[]
  : Infer<(typeof OPERATIONS)[Id]["success"]["of"]>;

type ExamplesOf<Id extends OperationId> = {
  readonly success: Examples<Success<Id>>;
} & (undefined extends Input<Id>["body"]
  ? { readonly request?: never }
  : { readonly request: Examples<Input<Id>["body"]> });

const rex: Pet = { id: 1n, name: "Rex", categoryId: 7n, status: "available" };
const mia: Pet = { id: 2n, name: "Mia", categoryId: 9_007_199_254_740_993n };
const placed: Order = { id: 1n, petId: 1n, status: "placed", createdAt: "2026-11-15T09:30:00.000Z" };

/** Typed by the table, so that an operation without examples, or an example out of shape, does not compile. */
export const EXAMPLES: { readonly [Id in OperationId]: ExamplesOf<Id> } = {
  listPets: {
    success: {
      page: { summary: "Two pets, the second without a status", value: [rex, mia] },
      empty: { summary: "No pet fits the filter", value: [] },
    },
  },
  createPet: {
    request: {
      available: {
        summary: "A pet that can be ordered",
        value: { name: "Rex", categoryId: 7n, status: "available" },
      },
      minimal: {
        summary: "Only what is required, with an identifier that a double would round",
        value: { name: "Mia", categoryId: 9_007_199_254_740_993n },
      },
    },
    success: {
      available: { summary: "The pet with its identifier", value: rex },
      minimal: { summary: "No status was given, so none is answered", value: mia },
    },
  },
  getPet: {
    success: { pet: { summary: "An available pet", value: rex } },
  },
  listOrders: {
    success: {
      page: { summary: "One order", value: [placed] },
      empty: { summary: "No order fits the filter", value: [] },
    },
  },
  placeOrder: {
    request: { order: { summary: "Order pet 1", value: { petId: 1n } } },
    success: { placed: { summary: "The order; pet 1 is now pending", value: placed } },
  },
  updateOrder: {
    request: {
      complete: { summary: "The pet is handed over", value: { status: "completed" } },
      cancel: { summary: "The pet goes back on offer", value: { status: "cancelled" } },
    },
    success: {
      completed: { summary: "Pet 1 is now sold", value: { ...placed, status: "completed" } },
      cancelled: { summary: "Pet 1 is available again", value: { ...placed, status: "cancelled" } },
    },
  },
};

/** What an error's `message` may say; programs decide on `code`. */
export const ERROR_MESSAGES: Readonly<Record<ErrorCode, string>> = {
  invalid_json: "The body must be valid JSON.",
  invalid_body: "categoryId must be an integer from -2^63 to 2^63 - 1.",
  invalid_parameter: "limit must be an integer from 1 to 100 in plain decimal.",
  missing_api_key: "Send an API key: Authorization: Bearer <key>.",
  invalid_api_key: "This API key is wrong, revoked, expired or of another environment.",
  not_found: "No resource lives at this path.",
  pet_not_found: "There is no pet 42.",
  order_not_found: "There is no order 42.",
  method_not_allowed: "This path allows GET, HEAD, POST, OPTIONS, not DELETE.",
  pet_not_available: "Pet 1 is pending.",
  order_closed: "Order 1 is completed.",
  idempotency_conflict: "The first request with this Idempotency-Key is still running.",
  operation_removed: "This operation has been removed; Link names its successor.",
  body_too_large: "The body must be at most 64 KiB (65,536 bytes).",
  unsupported_media_type: "Content-Type must be application/json.",
  idempotency_key_reused: "This Idempotency-Key was used with another body; take a new one.",
  rate_limited:
    "The limit is used up: X-RateLimit-Limit says which. Wait as many seconds as Retry-After says.",
  key_banned:
    "This key is banned for a while, for requests sent on after a 429. Wait as many seconds as Retry-After says.",
  internal_error: "Something went wrong on our side; it has been logged.",
  unavailable: "The service cannot answer right now; try again soon.",
};
