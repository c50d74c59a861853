export default {
  petstore: {
    input: "openapi.json",
    output: {
      target: "orval/petstore.ts",
      client: "fetch",
      baseUrl: process.env.API_URL,
      override: {
        useBigInt: true,
        fetch: { jsonReviver: { path: "exact-json.ts", name: "reviveInt64" } },
      },
    },
  },
};
