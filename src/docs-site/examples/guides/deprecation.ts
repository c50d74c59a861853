import { curlCommand } from "../curl.ts";
import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Fetches pet 7 with the deprecated operation. */
export const DEPRECATION_BEFORE: ExampleTemplates = {
  curl: (context) => curlCommand({ method: "GET", path: "/pets/7" }, context),

  typescript: (context) =>
    withClient(
      `try {
  const pet = await petstore.pets.get(7);
  console.log(pet.name);
} catch (error) {
  if (!(error instanceof NotFoundError)) throw error;
  console.log("There is no pet 7.");
}`,
      context,
      ["NotFoundError"],
    ),

  fetch: ({ baseUrl, key }) => `const response = await fetch("${baseUrl}/pets/7", {
  headers: { Authorization: "Bearer ${key}" },
});
if (response.status === 404) console.log("There is no pet 7.");
else console.log((await response.json()).name);`,

  python: ({ baseUrl, key }) => `import requests

response = requests.get(
    "${baseUrl}/pets/7",
    headers={"Authorization": "Bearer ${key}"},
)
if response.status_code == 404:
    print("There is no pet 7.")
else:
    print(response.json()["name"])`,
};

/** Does the same with the operation that stays. */
export const DEPRECATION_AFTER: ExampleTemplates = {
  curl: (context) => curlCommand({ method: "GET", path: "/pets?id=7" }, context),

  typescript: (context) =>
    withClient(
      `const [pet] = await petstore.pets.byIds([7]);
console.log(pet ? pet.name : "There is no pet 7.");`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `const response = await fetch("${baseUrl}/pets?id=7", {
  headers: { Authorization: "Bearer ${key}" },
});
const [pet] = await response.json();
console.log(pet ? pet.name : "There is no pet 7.");`,

  python: ({ baseUrl, key }) => `import requests

response = requests.get(
    "${baseUrl}/pets",
    params={"id": 7},
    headers={"Authorization": "Bearer ${key}"},
)
pets = response.json()
print(pets[0]["name"] if pets else "There is no pet 7.")`,
};
