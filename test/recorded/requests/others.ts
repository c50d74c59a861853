import { clientOf, HOST, message } from "../message.ts";
import type { Action, Scenario } from "../play.ts";

const { get, head, post, options } = clientOf("main");
const APP = "Origin: https://app.example.com";

const removeGetPet: Action = ({ clock }) => clock.step(Date.UTC(2030, 11, 5) - clock.now());

/** The other environment, with scripts of another origin; and after an operation was removed. */
export const staging: Scenario = {
  keys: { main: {} },
  config: {
    environment: "staging",
    publicUrl: "https://staging.petstore.example/v1",
    otherEnvironmentUrl: "https://petstore.example/v1",
    corsOrigins: ["https://app.example.com"],
  },
  steps: [
    ["staging, createPet 201", post("/pets", { name: "Rex", categoryId: 1 })],
    ["staging, getPet 200: Link names staging", get("/pets/1")],
    ["staging, / 200: where everything is", message("GET / HTTP/1.1", [HOST])],
    [
      "staging, invalid_api_key 401: a key of production",
      message("GET /v1/pets HTTP/1.1", [HOST, `Authorization: Bearer pet_live_${"0".repeat(36)}`]),
    ],
    [
      "CORS 204: a preflight needs no key",
      message("OPTIONS /v1/pets HTTP/1.1", [HOST, APP, "Access-Control-Request-Method: POST"]),
    ],
    ["CORS 200: an origin that is allowed", get("/pets/1", APP)],
    ["CORS 404: an origin that is allowed", get("/nothing", APP)],
    ["CORS 200: another origin", get("/pets/1", "Origin: https://other.example")],

    removeGetPet,
    ["operation_removed 410: getPet", get("/pets/1")],
    ["HEAD operation_removed 410: no body", head("/pets/1")],
    ["after the removal, OPTIONS 204", options("/pets/1")],
  ],
};

/** What does not arrive within 30 seconds, of 10 ms each. */
export const waits: Scenario = {
  keys: { main: {} },
  secondMs: 10,
  steps: [
    ["408: a head that does not arrive within 30 seconds", "GET /v1/pets HTTP/1.1\r\n"],
    [
      "408: a body that does not arrive within 30 seconds",
      post("/pets", { name: "Rex", categoryId: 1 }).slice(0, -5),
    ],
  ],
};

/** A stop while a request is in progress. */
export const shutdown: Scenario = {
  keys: { main: {} },
  steps: [
    { on: "slow", send: [post("/pets", { name: "slow", categoryId: 1 })], responses: 0 },
    async (server) => {
      await server.slowPet.begins.promise;
      void server.stop();
      server.slowPet.goesOn.resolve();
    },
    {
      name: "shutdown, createPet 201: in progress, so the connection closes",
      on: "slow",
      send: [],
      responses: 1,
    },
  ],
};
