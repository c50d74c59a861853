import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Adds a pet, orders it and completes the order. */
export const QUICKSTART: ExampleTemplates = {
  curl: ({ baseUrl, key }) => `API="${baseUrl}"
AUTHORIZATION="Authorization: Bearer ${key}"
JSON="Content-Type: application/json"

# Add a pet. The response has its id.
curl "$API/pets" -H "$AUTHORIZATION" -H "$JSON" \\
  -d '{"name": "Rex", "categoryId": 7, "status": "available"}'

# List available pets.
curl "$API/pets?status=available" -H "$AUTHORIZATION"

# Order pet 1, then complete order 1:
# use the ids of the responses.
curl "$API/store/orders" -H "$AUTHORIZATION" -H "$JSON" \\
  -d '{"petId": 1}'
curl -X PATCH "$API/store/orders/1" \\
  -H "$AUTHORIZATION" -H "$JSON" \\
  -d '{"status": "completed"}'`,

  typescript: (context) =>
    withClient(
      `const rex = await petstore.pets.create({
  name: "Rex",
  categoryId: 7,
  status: "available",
});

const available = petstore.pets.list({ status: "available" });
for await (const pet of available) console.log(pet.id, pet.name);

const order = await petstore.orders.place({ petId: rex.id });
const { status } = await petstore.orders.complete(order.id);
console.log(status);`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `async function request(method, path, body) {
  const response = await fetch("${baseUrl}" + path, {
    method,
    headers: {
      Authorization: "Bearer ${key}",
      "Content-Type": "application/json",
    },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

const rex = await request("POST", "/pets", {
  name: "Rex",
  categoryId: 7,
  status: "available",
});

const available = await request("GET", "/pets?status=available");
for (const pet of available) console.log(pet.id, pet.name);

const order = await request("POST", "/store/orders", { petId: rex.id });
const path = \`/store/orders/\${order.id}\`;
const { status } = await request("PATCH", path, { status: "completed" });
console.log(status);`,

  python: ({ baseUrl, key }) => `import requests

API = "${baseUrl}"
session = requests.Session()
session.headers["Authorization"] = "Bearer ${key}"


def request(method, path, **options):
    response = session.request(method, API + path, **options)
    response.raise_for_status()
    return response.json()


rex = request(
    "POST",
    "/pets",
    json={"name": "Rex", "categoryId": 7, "status": "available"},
)

for pet in request("GET", "/pets", params={"status": "available"}):
    print(pet["id"], pet["name"])

order = request("POST", "/store/orders", json={"petId": rex["id"]})
path = f"/store/orders/{order['id']}"
order = request("PATCH", path, json={"status": "completed"})
print(order["status"])`,
};
