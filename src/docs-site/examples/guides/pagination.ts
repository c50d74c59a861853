import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Prints the name of every pet. */
export const PAGINATION: ExampleTemplates = {
  curl: ({ baseUrl, key }) => `next="${baseUrl}/pets?limit=100"
while [ -n "$next" ]; do
  curl -s -D headers.txt "$next" \\
    -H "Authorization: Bearer ${key}"
  next=$(sed -n 's/^[Ll]ink: <\\([^>]*\\)>; rel="next".*/\\1/p' headers.txt)
done`,

  typescript: (context) =>
    withClient(
      `for await (const pet of petstore.pets.list()) {
  console.log(pet.name);
}`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `const headers = { Authorization: "Bearer ${key}" };

let next = "${baseUrl}/pets?limit=100";
while (next) {
  const response = await fetch(next, { headers });
  if (!response.ok) throw new Error(await response.text());
  for (const pet of await response.json()) console.log(pet.name);
  const link = response.headers.get("Link");
  next = link?.match(/<([^>]*)>; rel="next"/)?.[1];
}`,

  python: ({ baseUrl, key }) => `import requests

session = requests.Session()
session.headers["Authorization"] = "Bearer ${key}"

url = "${baseUrl}/pets?limit=100"
while url:
    response = session.get(url)
    response.raise_for_status()
    for pet in response.json():
        print(pet["name"])
    url = response.links.get("next", {}).get("url")`,
};
