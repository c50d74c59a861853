import { hash } from "node:crypto";
import rateLimit from "@fastify/rate-limit";
import Database from "better-sqlite3";
import fastify from "fastify";
import {
  createStore,
  ERRORS,
  type Key,
  type NewPet,
  nextLink,
  PRAGMAS,
  type Query,
  type Statement,
  STATUSES,
  type Value,
} from "./peer-store.ts";

declare module "fastify" {
  interface FastifyRequest {
    key: Key;
  }
}

const [port = "", path = ""] = process.argv.slice(2);
const database = new Database(path);
for (const pragma of PRAGMAS) database.exec(pragma);
const store = createStore({
  prepare: <Row>(sql: string): Statement<Row> => database.prepare<Value[], Row>(sql),
  sha256: (text) => hash("sha256", text),
});

const status = { type: "string", enum: STATUSES } as const;
const fields = {
  name: { type: "string", minLength: 1, maxLength: 1024 },
  categoryId: { type: "integer" },
  status,
} as const;
const NewPetSchema = { type: "object", required: ["name", "categoryId"], properties: fields };
const PetSchema = {
  type: "object",
  required: ["id", "name", "categoryId"],
  properties: { id: { type: "integer" }, ...fields },
};
const ListQuerySchema = {
  type: "object",
  properties: {
    limit: { type: "integer", minimum: 1, maximum: 100, default: 20 },
    status,
    cursor: { type: "integer", minimum: 0 },
  },
};
const ParamsSchema = { type: "object", properties: { petId: { type: "integer" } } };

const app = fastify({ logger: false, bodyLimit: 65_536 });
app.decorateRequest("key");
app.addHook("onRequest", (request, reply, done) => {
  const key = store.keyOf(request.headers.authorization);
  if (key === undefined) return void reply.code(401).send(ERRORS.unauthorized);
  request.key = key;
  done();
});
await app.register(rateLimit, {
  timeWindow: 60_000,
  max: (request) => request.key.perMinute,
  keyGenerator: (request) => request.key.id,
  errorResponseBuilder: () => ({ statusCode: 429, ...ERRORS.limited }),
});

app.get<{ Querystring: Query }>(
  "/v1/pets",
  { schema: { querystring: ListQuerySchema, response: { 200: { type: "array", items: PetSchema } } } },
  (request, reply) => {
    const { items, next } = store.list(request.query);
    if (next !== undefined) reply.header("Link", nextLink(next));
    reply.send(items);
  },
);

app.get<{ Params: { petId: number } }>(
  "/v1/pets/:petId",
  { schema: { params: ParamsSchema, response: { 200: PetSchema } } },
  (request, reply) => {
    const pet = store.get(request.params.petId);
    if (pet === undefined) reply.code(404).send(ERRORS.notFound);
    else reply.send(pet);
  },
);

app.post<{ Body: NewPet }>(
  "/v1/pets",
  { schema: { body: NewPetSchema, response: { 201: PetSchema } } },
  (request, reply) => {
    const added = store.create(request.body);
    reply.code(201).header("Location", `/v1/pets/${added.id}`).send(added);
  },
);

await app.listen({ port: Number(port), host: "127.0.0.1" });
