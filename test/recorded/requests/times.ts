import { bearer, clientOf, HOST, JSON_TYPE, message, ORIGIN } from "../message.ts";
import type { Action, Scenario } from "../play.ts";

const { get, head } = clientOf("main");

/** By the server's clock. */
const wait =
  (seconds: number): Action =>
  ({ speed }) =>
    Bun.sleep((seconds * 1_000) / speed);

/** From 5 December 2030 on. */
export const removal: Scenario = {
  clock: { offsetMs: Date.UTC(2030, 11, 5) - Date.now() },
  flags: ["--public-url", ORIGIN],
  prepare: (server) =>
    server.createKey("main", ["--plan", "free"], { offsetMs: Date.UTC(2030, 11, 5) - Date.now() }),
  steps: [
    ["operation_removed 410: getPet", get("/pets/1")],
    ["HEAD operation_removed 410: no body", head("/pets/1")],
    ["operation_removed 410: before what is wrong with the identifier", get("/pets/abc")],
    ["after the removal, listPets 200", get("/pets")],
    ["after the removal, OPTIONS 204", clientOf("main").options("/pets/1")],
  ],
};

/** What takes a minute, by a clock that runs 15 times as fast. Its deadlines are too short for writes. */
export const waits: Scenario = {
  clock: { speed: 15 },
  keys: {
    main: ["--plan", "free"],
    limited: ["--plan", "free"],
    other: ["--plan", "pro"],
  },
  flags: ["--public-url", ORIGIN, "--free-limits", "1/100", "--ban-strikes", "1", "--ban-length", "60s"],
  steps: [
    {
      name: "waits 200: on a connection that is idle from then on",
      on: "idle",
      send: [clientOf("other").get("/pets")],
    },
    { on: "head", send: ["GET /v1/pets HTTP/1.1\r\n"], responses: 0 },
    {
      on: "body",
      send: [message("POST /v1/pets HTTP/1.1", [HOST, bearer("other"), JSON_TYPE, "Content-Length: 9"], "{")],
      responses: 0,
    },
    ["waits 200: the only one", get("/pets")],
    ["rate_limited 429: to wait for", get("/pets")],
    ["waits 200: before a ban", clientOf("limited").get("/pets")],
    ["rate_limited 429: before a ban", clientOf("limited").get("/pets")],
    wait(2),
    ["key_banned 429: a strike after a second of grace", clientOf("limited").get("/pets")],
    {
      name: "408: a head that had not come within 30 seconds",
      on: "head",
      send: [],
      responses: 1,
      isTimed: true,
    },
    {
      name: "408: a body that had not come within 30 seconds",
      on: "body",
      send: [],
      responses: 1,
      isTimed: true,
    },
    wait(40),
    { name: "waits 200: after Retry-After", on: "later", send: [get("/pets")] },
    { name: "waits 200: after the ban", on: "later", send: [clientOf("limited").get("/pets")] },
    { name: "an idle connection stays open for 75 seconds", on: "idle", send: [], isTimed: true },
  ],
};
