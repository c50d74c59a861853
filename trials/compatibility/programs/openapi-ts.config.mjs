export default {
  input: "http://127.0.0.1:8080/openapi.json",
  output: { path: "hey-api", module: { extension: ".ts" } },
  plugins: [
    "@hey-api/client-fetch",
    "@hey-api/typescript",
    { name: "@hey-api/transformers", bigInt: true, dates: false },
    { name: "@hey-api/sdk", transformer: true },
  ],
};
