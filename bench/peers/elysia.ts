import { Elysia, t } from "elysia";
import { DefaultContext, rateLimit } from "elysia-rate-limit";
import { openStore } from "./bun-store.ts";
import { ERRORS, type Key, nextLink, readArguments, STATUSES } from "./peer-store.ts";

const { port, database } = readArguments();
const store = openStore(database);

const status = t.Union(STATUSES.map((name) => t.Literal(name)));
const NewPet = t.Object({
  name: t.String({ minLength: 1, maxLength: 1024 }),
  categoryId: t.Integer(),
  status: t.Optional(status),
});
const ListQuery = t.Object({
  limit: t.Integer({ minimum: 1, maximum: 100, default: 20 }),
  status: t.Optional(status),
  cursor: t.Optional(t.Integer({ minimum: 0 })),
});

/** By the id of the key: all that the rate limiter passes to `max`. */
const perMinute = new Map<string, number>();

new Elysia({ precompile: true })
  .derive(({ headers, status }) => {
    const key = store.keyOf(headers.authorization);
    if (key === undefined) return status(401, ERRORS.unauthorized);
    perMinute.set(key.id, key.perMinute);
    return { key };
  })
  .use(
    rateLimit({
      duration: 60_000,
      max: (id) => perMinute.get(id) ?? 1,
      generator: (_request, _server, { key }: { key: Key }) => key.id,
      errorResponse: Response.json(ERRORS.limited, { status: 429 }),
      context: new DefaultContext(),
    }),
  )
  .get(
    "/v1/pets",
    ({ query, set }) => {
      const { items, next } = store.list(query);
      if (next !== undefined) set.headers.link = nextLink(next);
      return items;
    },
    { query: ListQuery },
  )
  .get("/v1/pets/:petId", ({ params, status }) => store.get(params.petId) ?? status(404, ERRORS.notFound), {
    params: t.Object({ petId: t.Integer() }),
  })
  .post(
    "/v1/pets",
    ({ body, set }) => {
      const added = store.create(body);
      set.status = 201;
      set.headers.location = `/v1/pets/${added.id}`;
      return added;
    },
    { body: NewPet },
  )
  .listen({ port, hostname: "127.0.0.1" });
