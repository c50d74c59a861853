import { toJson } from "../../api/json.ts";
import { EXAMPLES } from "../../petstore/openapi/examples.ts";
import { OPERATIONS, type PetstoreOperation } from "../../petstore/operations.ts";
import type { OperationId } from "../../domain/usage-history.ts";
import type { Fields } from "./object-literal.ts";

/** A request that an example sends. */
export interface ExampleRequest {
  readonly method: PetstoreOperation["method"];
  /** Relative to the base URL, with the query string. */
  readonly path: string;
  readonly body?: Fields;
}

const PETS = "?status=available&limit=10";
const ORDERS = "?status=placed";

/** Pet 1 and order 1 exist as soon as the examples of `createPet` and `placeOrder` have run. */
export const EXAMPLE_REQUESTS: Readonly<Record<OperationId, ExampleRequest>> = {
  listPets: request("listPets", { query: PETS }),
  createPet: request("createPet", { body: EXAMPLES.createPet.request["available"]?.value }),
  getPet: request("getPet", { id: 1 }),
  listOrders: request("listOrders", { query: ORDERS }),
  placeOrder: request("placeOrder", { body: EXAMPLES.placeOrder.request["order"]?.value }),
  getOrder: request("getOrder", { id: 1 }),
  updateOrder: request("updateOrder", { id: 1, body: EXAMPLES.updateOrder.request["complete"]?.value }),
};

interface Parts {
  readonly id?: number;
  readonly query?: string;
  readonly body?: object | undefined;
}

function request(operationId: OperationId, { id, query = "", body }: Parts): ExampleRequest {
  const { method, path }: PetstoreOperation = OPERATIONS[operationId];
  const target = path.replace(/\{\w+\}/, String(id)) + query;
  return { method, path: target, ...(body !== undefined && { body: fieldsOf(body) }) };
}

function fieldsOf(body: object): Fields {
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, toJson(value)]));
}
