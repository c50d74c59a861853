import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { z } from "zod";
import { openStore } from "./bun-store.ts";
import { ERRORS, type Key, nextLink, readArguments } from "./peer-store.ts";
import { ListQuery, NewPet, PetId } from "./zod-schemas.ts";

const { port, database } = readArguments();
const store = openStore(database);

const Params = z.object({ petId: PetId });

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
