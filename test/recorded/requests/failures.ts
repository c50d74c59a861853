import type { Database } from "bun:sqlite";
import { startPostgres } from "../../../harness/postgres.ts";
import { clientOf, HOST, message, ORIGIN } from "../message.ts";
import type { Action, Scenario } from "../play.ts";

const { get, head, post, patch } = clientOf("main");
const FREE = ["--plan", "free"];
const REX = { name: "Rex", categoryId: 1 };
const health = message("GET /healthz HTTP/1.1", [HOST]);
const UNDER_A = "Idempotency-Key: a";

let database: Database | undefined;

/** Another process begins a transaction, so that the server cannot write. */
const lock: Action = (server) => {
  database = server.openDatabase();
  database.run("BEGIN IMMEDIATE");
};
const unlock: Action = () => {
  database?.run("ROLLBACK");
  database?.close();
};
/** Every statement of the server fails from then on. */
const dropTables: Action = (server) => {
  using database = server.openDatabase();
  // The server writes usage meanwhile.
  database.run("PRAGMA busy_timeout = 5000");
  database.run("PRAGMA foreign_keys = OFF");
  const tables = database.query<{ name: string }, []>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  for (const { name } of tables.all()) database.run(`DROP TABLE ${name}`);
};

/**
 * A database that cannot be written to, and one that is broken. Requests on several connections may arrive in any
 * order, so they use several keys.
 */
export const failures: Scenario = {
  keys: { main: FREE, second: FREE, third: FREE, unseen: FREE },
  flags: ["--public-url", ORIGIN],
  steps: [
    ...["first", "second", "third"].map((on) => ({ on, send: [health] })),
    ["failures, createPet 201", post("/pets", REX)],
    lock,
    { on: "first", send: [post("/pets", REX, UNDER_A)], responses: 0 },
    ["failures, listPets 200: while a write waits", clientOf("second").get("/pets")],
    ["idempotency_conflict 409: the first is still running", post("/pets", REX, UNDER_A)],
    unlock,
    { name: "createPet 201: the one that waited", on: "first", send: [], responses: 1 },
    ["createPet 201: the repeat of the one that waited", post("/pets", REX, UNDER_A)],
    lock,
    { on: "first", send: [post("/pets", REX)], responses: 0 },
    { on: "second", send: [clientOf("second").post("/store/orders", { petId: 1 })], responses: 0 },
    {
      on: "third",
      send: [clientOf("third").patch("/store/orders/1", { status: "completed" })],
      responses: 0,
    },
    { name: "unavailable 503: createPet", on: "first", send: [], responses: 1 },
    { name: "unavailable 503: placeOrder", on: "second", send: [], responses: 1 },
    { name: "unavailable 503: updateOrder", on: "third", send: [], responses: 1 },
    unlock,
    dropTables,
    ["internal_error 500: listPets", get("/pets?status=sold")],
    ["HEAD internal_error 500: no body", head("/pets?status=sold")],
    ["internal_error 500: createPet", post("/pets", REX)],
    ["internal_error 500: getPet", get("/pets/77")],
    ["internal_error 500: listOrders", get("/store/orders")],
    ["internal_error 500: placeOrder", post("/store/orders", { petId: 1 })],
    ["internal_error 500: updateOrder", patch("/store/orders/1", { status: "completed" })],
    ["internal_error 500: a key that was not seen before", clientOf("unseen").get("/pets")],
  ],
};

/** Between SIGTERM and the end. */
export const shutdown: Scenario = {
  keys: { main: FREE },
  flags: ["--public-url", ORIGIN, "--drain-delay", "5s"],
  steps: [
    ["shutdown, healthz 200: before", health],
    async (server) => {
      server.signal("SIGTERM");
      while ((await fetch(`http://127.0.0.1:${server.port}/healthz`)).ok) await Bun.sleep(5);
    },
    ["shutdown, healthz 503", health],
    ["shutdown, HEAD healthz 503", health.replace("GET", "HEAD")],
    ["shutdown, listPets 200: the connection closes", get("/pets")],
    ["shutdown, createPet 201: the connection closes", post("/pets", REX)],
    ["shutdown, not_found 404: the connection closes", get("/nothing")],
  ],
};

let postgres: Awaited<ReturnType<typeof startPostgres>> | undefined;

/** PostgreSQL stops while the server runs. */
export const outage: Scenario = {
  async engines() {
    postgres = await startPostgres();
    return ["--database-url", postgres.url];
  },
  keys: { main: FREE, unseen: FREE },
  flags: ["--public-url", ORIGIN],
  steps: [
    ["outage, listPets 200: before", get("/pets")],
    () => postgres?.kill(),
    ["unavailable 503: listPets, without PostgreSQL", get("/pets")],
    ["HEAD unavailable 503: no body", head("/pets")],
    ["unavailable 503: getPet, without PostgreSQL", get("/pets/1")],
    ["unavailable 503: createPet, without PostgreSQL", post("/pets", REX)],
    ["unavailable 503: listOrders, without PostgreSQL", get("/store/orders")],
    ["unavailable 503: placeOrder, without PostgreSQL", post("/store/orders", { petId: 1 })],
    ["unavailable 503: a key that cannot be looked up", clientOf("unseen").get("/pets")],
    ["HEAD unavailable 503: a key that cannot be looked up", clientOf("unseen").head("/pets")],
    ["not_found 404: without PostgreSQL", get("/nothing")],
    ["healthz 200: without PostgreSQL", health],
  ],
};
