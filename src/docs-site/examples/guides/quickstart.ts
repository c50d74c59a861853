import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Adds a pet, orders it and completes the order. */
export const QUICKSTART: ExampleTemplates = {
  curl: ({ baseUrl, key }) => `API="${baseUrl}"
KEY="${key}"

# Add a pet. The response has its id.
curl "$API/pets" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"name": "Rex", "categoryId": 7, "status": "available"}'

# List available pets.
curl "$API/pets?status=available" -H "Authorization: Bearer $KEY"

# Order pet 1, then complete order 1: use the ids of the responses.
curl "$API/store/orders" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"petId": 1}'
curl -X PATCH "$API/store/orders/1" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"status": "completed"}'`,

  typescript: (context) =>
    withClient(
      `const pet = await petstore.pets.create({ name: "Rex", categoryId: 7, status: "available" });

for await (const { id, name } of petstore.pets.list({ status: "available" })) console.log(id, name);

const order = await petstore.orders.place({ petId: pet.id });
const { status } = await petstore.orders.complete(order.id);
console.log(status);`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `async function request(method, path, body) {
  const response = await fetch("${baseUrl}" + path, {
    method,
    headers: { Authorization: "Bearer ${key}", "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

const pet = await request("POST", "/pets", { name: "Rex", categoryId: 7, status: "available" });

for (const { id, name } of await request("GET", "/pets?status=available")) console.log(id, name);

const order = await request("POST", "/store/orders", { petId: pet.id });
const { status } = await request("PATCH", \`/store/orders/\${order.id}\`, { status: "completed" });
console.log(status);`,

  python: ({ baseUrl, key }) => `import requests

API = "${baseUrl}"
session = requests.Session()
session.headers["Authorization"] = "Bearer ${key}"


def request(method, path, **options):
    response = session.request(method, API + path, **options)
    response.raise_for_status()
    return response.json()


pet = request("POST", "/pets", json={"name": "Rex", "categoryId": 7, "status": "available"})

for each in request("GET", "/pets", params={"status": "available"}):
    print(each["id"], each["name"])

order = request("POST", "/store/orders", json={"petId": pet["id"]})
order = request("PATCH", f"/store/orders/{order['id']}", json={"status": "completed"})
print(order["status"])`,
};
