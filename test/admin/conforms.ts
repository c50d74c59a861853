import { expect } from "bun:test";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import addFormats from "ajv-formats";
import { adminOpenApiJson } from "../../src/operator/openapi.ts";
import { ADMIN_OPERATIONS, type AdminOperationId } from "../../src/operator/operations.ts";

type Json = { readonly [key: string]: Json };

const DOCUMENT: Json = JSON.parse(adminOpenApiJson());
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema(closed(DOCUMENT), "admin");

/** Clients must ignore unknown fields; the service must not send any. */
function closed(node: unknown): Json {
  return JSON.parse(JSON.stringify(node), (_key, value: unknown) => {
    const isObject =
      typeof value === "object" && value !== null && "properties" in value && "required" in value;
    return isObject ? { additionalProperties: false, ...value } : value;
  });
}

const validators = new Map<string, ValidateFunction | undefined>();

function validatorOf(id: AdminOperationId, status: number): ValidateFunction | undefined {
  const name = `${id} ${status}`;
  if (!validators.has(name)) validators.set(name, compile(id, status));
  return validators.get(name);
}

function compile(id: AdminOperationId, status: number): ValidateFunction | undefined {
  const { path, method } = ADMIN_OPERATIONS[id];
  const pointer = ["paths", path, method.toLowerCase(), "responses", String(status)];
  const body = [...pointer, "content", "application/json", "schema"];
  const declared = pointer.reduce<Json | undefined>((node, key) => node?.[key], DOCUMENT);
  expect(declared, `${id} declares ${status}`).toBeDefined();
  if (declared?.["content"] === undefined) return undefined;
  const escaped = body.map((key) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1")));
  return ajv.compile({ $ref: `admin#/${escaped.join("/")}` });
}

/** Compares a response with the OpenAPI document of the admin API. */
export function expectAdminConforms(
  id: AdminOperationId,
  { status, text }: { readonly status: number; readonly text: string },
): void {
  const validate = validatorOf(id, status);
  if (validate === undefined) return expect(text).toBe("");
  const isValid = validate(JSON.parse(text));
  expect(isValid ? [] : [ajv.errorsText(validate.errors)], `${id} ${status}: ${text.slice(0, 300)}`).toEqual(
    [],
  );
}

/** The operation of a method and a path. */
export function adminOperationAt(method: string, path: string): AdminOperationId | undefined {
  const plain = path.replace(/\?.*$/s, "").replace(/^\/api(?=\/)/, "");
  const wanted = method === "HEAD" ? "GET" : method;
  const ids = Object.keys(ADMIN_OPERATIONS) as AdminOperationId[];
  const matches = ids.filter((id) => {
    const operation = ADMIN_OPERATIONS[id];
    const pattern = new RegExp(`^${operation.path.replace(/\{\w+\}/, "[^/]+")}$`);
    return operation.method === wanted && pattern.test(plain);
  });
  return matches.find((id) => !ADMIN_OPERATIONS[id].path.includes("{")) ?? matches[0];
}
