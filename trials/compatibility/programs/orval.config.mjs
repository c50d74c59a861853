const jsonReviver = { path: "exact-json.ts", name: "reviveInt64" };

export default {
  petstore: {
    input: "http://127.0.0.1:8080/openapi.json",
    output: {
      target: "orval/petstore.ts",
      client: "fetch",
      baseUrl: "http://127.0.0.1:8080/v1",
      override: { useBigInt: true, fetch: { jsonReviver } },
    },
  },
};
