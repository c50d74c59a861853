import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Creates one pet, however often a connection breaks or the server fails. */
export const IDEMPOTENCY: ExampleTemplates = {
  curl: ({ baseUrl, key }) => `# One Idempotency-Key for each pet,
# the same for every attempt.
curl "${baseUrl}/pets" \\
  --retry 5 --retry-all-errors --fail-with-body -o pet.json \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -H "Idempotency-Key: $(openssl rand -hex 16)" \\
  -d '{"name": "Rex", "categoryId": 7}'
cat pet.json`,

  typescript: (context) =>
    withClient(
      `// Without idempotencyKey the client chooses a
// random one for all attempts of the call. One
// that your program can compute again also
// covers a restart of your program.
const options = { idempotencyKey: "import-42-row-1" };
const newPet = { name: "Rex", categoryId: 7 };
const pet = await petstore.pets.create(newPet, options);
console.log(pet.id);`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `// One Idempotency-Key for each pet,
// the same for every attempt.
const options = {
  method: "POST",
  headers: {
    Authorization: "Bearer ${key}",
    "Content-Type": "application/json",
    "Idempotency-Key": crypto.randomUUID(),
  },
  body: JSON.stringify({ name: "Rex", categoryId: 7 }),
};

async function createPet() {
  try {
    return await fetch("${baseUrl}/pets", options);
  } catch {
    return undefined; // no response
  }
}

for (let attempt = 1; attempt <= 5; attempt++) {
  const response = await createPet();
  if (response && response.status < 500) {
    console.log(response.status, await response.text());
    break;
  }
  const delay = Math.random() * 1000 * 2 ** attempt;
  await new Promise((resolve) => setTimeout(resolve, delay));
}`,

  python: ({ baseUrl, key }) => `import random
import time
import uuid

import requests

# One Idempotency-Key for each pet,
# the same for every attempt.
headers = {
    "Authorization": "Bearer ${key}",
    "Idempotency-Key": str(uuid.uuid4()),
}

for attempt in range(1, 6):
    try:
        response = requests.post(
            "${baseUrl}/pets",
            headers=headers,
            json={"name": "Rex", "categoryId": 7},
            timeout=15,
        )
        if response.status_code < 500:
            print(response.status_code, response.text)
            break
    except requests.ConnectionError:
        pass
    time.sleep(random.random() * 2**attempt)`,
};
