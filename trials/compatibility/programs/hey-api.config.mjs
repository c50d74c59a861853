export default {
  input: "openapi.json",
  output: { path: "hey-api", module: { extension: ".ts" } },
  plugins: [
    "@hey-api/client-fetch",
    "@hey-api/typescript",
    { name: "@hey-api/transformers", bigInt: true, dates: false },
    { name: "@hey-api/sdk", transformer: true },
  ],
};
