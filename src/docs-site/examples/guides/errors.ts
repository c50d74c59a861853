import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Tells one error from another by its code. */
export const ERRORS: ExampleTemplates = {
  curl: ({ baseUrl, key }) => `# The error body, then the status.
curl -s -w '\\n%{http_code}\\n' "${baseUrl}/store/orders/42" \\
  -H "Authorization: Bearer ${key}"`,

  typescript: (context) =>
    withClient(
      `try {
  console.log(await petstore.orders.get(42));
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.code === "order_not_found") {
    console.log("You have no such order.");
  } else {
    console.log(error.code, error.message, error.requestId);
  }
}`,
      context,
      ["ApiError"],
    ),

  fetch: ({ baseUrl, key }) => `const response = await fetch("${baseUrl}/store/orders/42", {
  headers: { Authorization: "Bearer ${key}" },
});
const body = await response.json();
if (response.ok) {
  console.log(body);
} else if (body.code === "order_not_found") {
  console.log("You have no such order.");
} else {
  const requestId = response.headers.get("X-Request-Id");
  console.log(body.code, body.message, requestId);
}`,

  python: ({ baseUrl, key }) => `import requests

response = requests.get(
    "${baseUrl}/store/orders/42",
    headers={"Authorization": "Bearer ${key}"},
)
body = response.json()
if response.ok:
    print(body)
elif body["code"] == "order_not_found":
    print("You have no such order.")
else:
    request_id = response.headers["X-Request-Id"]
    print(body["code"], body["message"], request_id)`,
};
