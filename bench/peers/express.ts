import express, { type NextFunction, type Request, type Response } from "express";
import { rateLimit } from "express-rate-limit";
import { openStore } from "./node-store.ts";
import { ERRORS, nextLink, readArguments } from "./peer-store.ts";
import { ListQuery, NewPet, PetId } from "./zod-schemas.ts";

const { port, database } = readArguments();
const store = openStore(database);

const app = express();
app.disable("x-powered-by");
// By default it hashes every body for an ETag, which no peer has to send.
app.disable("etag");
app.set("query parser", "simple");

app.use((request, response, next) => {
  const key = store.keyOf(request.headers.authorization);
  if (key === undefined) return void response.status(401).json(ERRORS.unauthorized);
  response.locals.key = key;
  next();
});
app.use(
  rateLimit({
    windowMs: 60_000,
    limit: (_request, response) => response.locals.key.perMinute,
    keyGenerator: (_request, response) => response.locals.key.id,
    legacyHeaders: true,
    standardHeaders: false,
    message: ERRORS.limited,
    validate: false,
  }),
);

app.get("/v1/pets", (request, response) => {
  const query = ListQuery.safeParse(request.query);
  if (!query.success) return void response.status(400).json(ERRORS.invalid);
  const { items, next } = store.list(query.data);
  if (next !== undefined) response.setHeader("Link", nextLink(next));
  response.json(items);
});

app.get("/v1/pets/:petId", (request, response) => {
  const id = PetId.safeParse(request.params.petId);
  const pet = id.success ? store.get(id.data) : undefined;
  if (pet === undefined) return void response.status(404).json(ERRORS.notFound);
  response.json(pet);
});

app.post("/v1/pets", express.json({ limit: "64kb" }), (request, response) => {
  const pet = NewPet.safeParse(request.body);
  if (!pet.success) return void response.status(400).json(ERRORS.invalid);
  const added = store.create(pet.data);
  response.status(201).setHeader("Location", `/v1/pets/${added.id}`).json(added);
});

app.use((_error: unknown, _request: Request, response: Response, _next: NextFunction) => {
  response.status(400).json(ERRORS.invalid);
});

app.listen(port, "127.0.0.1");
