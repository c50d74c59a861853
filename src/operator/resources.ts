import {
  array,
  boolean,
  type Infer,
  integer,
  line,
  nested,
  nullable,
  object,
  oneOf,
  quantity,
  text,
} from "../api/schema.ts";
import { ENVIRONMENTS } from "../domain/api-keys.ts";
import { orderFields, Pet, petFields, PetStatus } from "../domain/resources.ts";
import { keyId, nextCursor, time } from "./key-resources.ts";

export const NewSession = object({
  required: { token: line(200, { description: "The admin token" }) },
  json: { description: "What to sign in with" },
});
export type NewSession = Infer<typeof NewSession>;

const Environment = oneOf(ENVIRONMENTS, { description: "Environment of the server" });
const version = line(40, { description: "Version of Petstore", examples: ["1.0.0"] });

export const Session = object({
  required: { signedIn: boolean({ description: "Whether the request has a session or the admin token" }) },
  optional: { environment: Environment, version },
  json: { description: "`environment` and `version` are only there if `signedIn` is true." },
});
export type Session = Infer<typeof Session>;

const state = oneOf(["available", "unavailable"], { description: "Whether it can be used now" });
const latencyMs = nullable(quantity({ description: "Time of the last request to it" }), {
  description: "Null if it is unavailable, or had no request yet",
});

export const Server = object({
  required: {
    environment: Environment,
    version,
    runtime: line(60, { description: "The runtime and its version", examples: ["Bun 1.4.4"] }),
    startedAt: time("When the server started"),
    publicUrl: line(2_000, { description: "URL of the API as clients see it" }),
    instance: nested(
      object({
        required: {
          address: line(300, {
            description: "Where the server listens for clients",
            examples: ["127.0.0.1:8080"],
          }),
          pid: integer({ min: 1, max: 2 ** 31, description: "Process ID" }),
        },
      }),
    ),
    database: nested(object({ required: { kind: oneOf(["SQLite", "PostgreSQL"]), state, latencyMs } })),
    rateLimiter: nested(object({ required: { kind: oneOf(["memory", "Valkey"]), state, latencyMs } })),
    draining: boolean({ description: "Whether the server is about to stop" }),
  },
  json: { description: "The server that responds, and what it depends on" },
});
export type Server = Infer<typeof Server>;

export const SETTING_SOURCES = ["default", "flag", "variable", "env file"] as const;

const Setting = object({
  required: {
    name: line(60, { description: "The flag without its dashes", examples: ["ban-length"] }),
    variable: line(80, { description: "The environment variable", examples: ["PETSTORE_BAN_LENGTH"] }),
    value: nullable(text(10_000, { description: "The effective value. Secrets are masked." })),
    default: nullable(text(10_000, { description: "The value if nothing is set" })),
    source: oneOf(SETTING_SOURCES, { description: "Where the value comes from" }),
    help: text(2_000, { description: "What the setting does" }),
  },
  json: { description: "A setting of the server that responds" },
});
export type Setting = Infer<typeof Setting>;

export const Settings = object({
  required: {
    items: array(nested(Setting), { json: { description: "In the order of `petstore serve --help`" } }),
  },
  json: { description: "The settings of the server that responds" },
});
export type Settings = Infer<typeof Settings>;

export const PetPage = object({
  required: { items: array(nested(Pet)), nextCursor },
  json: { description: "A page of pets, in ascending order of their identifiers" },
});
export type PetPage = Infer<typeof PetPage>;

export const PetUpdate = object({
  required: {},
  optional: {
    ...petFields,
    status: nullable(PetStatus, { description: "Null removes the status" }),
  },
  json: { description: "The fields to change, at least one", minProperties: 1 },
});
export type PetUpdate = Infer<typeof PetUpdate>;

export const AdminOrder = object({
  required: { ...orderFields, keyId: nullable(keyId, { description: "The API key that placed the order" }) },
  json: { description: "An order with the API key that placed it" },
});
export type AdminOrder = Infer<typeof AdminOrder>;

export const OrderPage = object({
  required: { items: array(nested(AdminOrder)), nextCursor },
  json: { description: "A page of orders, newest first" },
});
export type OrderPage = Infer<typeof OrderPage>;
