import { Database } from "bun:sqlite";
import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { z } from "zod";
import {
  createStore,
  ERRORS,
  type Key,
  nextLink,
  PRAGMAS,
  type Statement,
  STATUSES,
  type Value,
} from "./peer-store.ts";

const [port = "", path = ""] = process.argv.slice(2);
const database = new Database(path, { readwrite: true });
for (const pragma of PRAGMAS) database.run(pragma);
const store = createStore({
  prepare: <Row>(sql: string): Statement<Row> => database.prepare<Row, Value[]>(sql),
  sha256: (text) => Bun.CryptoHasher.hash("sha256", text, "hex"),
});

const status = z.enum(STATUSES).optional();
const NewPet = z.object({ name: z.string().min(1).max(1024), categoryId: z.int(), status });
const ListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  status,
  cursor: z.coerce.number().int().min(0).optional(),
});
const Params = z.object({ petId: z.coerce.number().int() });

type Env = { Variables: { key: Key } };
const app = new Hono<Env>();

app.use(async (context, next) => {
  const key = store.keyOf(context.req.header("authorization"));
  if (key === undefined) return context.json(ERRORS.unauthorized, 401);
  context.set("key", key);
  await next();
});
app.use(
  rateLimiter<Env>({
    windowMs: 60_000,
    limit: (context) => context.get("key").perMinute,
    keyGenerator: (context) => context.get("key").id,
    message: ERRORS.limited,
  }),
);

app.get("/v1/pets", zValidator("query", ListQuery), (context) => {
  const { items, next } = store.list(context.req.valid("query"));
  if (next !== undefined) context.header("Link", nextLink(next));
  return context.json(items);
});

app.get("/v1/pets/:petId", zValidator("param", Params), (context) => {
  const pet = store.get(context.req.valid("param").petId);
  return pet === undefined ? context.json(ERRORS.notFound, 404) : context.json(pet);
});

app.post("/v1/pets", zValidator("json", NewPet), (context) => {
  const added = store.create(context.req.valid("json"));
  context.header("Location", `/v1/pets/${added.id}`);
  return context.json(added, 201);
});

Bun.serve({ port, hostname: "127.0.0.1", development: false, fetch: app.fetch });
