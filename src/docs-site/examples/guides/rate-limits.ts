import type { ExampleTemplates } from "../example.ts";
import { withClient } from "../typescript.ts";

/** Waits and repeats the request when the response is 429. */
export const RATE_LIMITS: ExampleTemplates = {
  curl: ({ baseUrl, key }) => `# Waits for Retry-After. The exit status is 22
# if the last response is an error.
curl --retry 5 --fail-with-body -o pets.json "${baseUrl}/pets" \\
  -H "Authorization: Bearer ${key}"`,

  typescript: (context) =>
    withClient(
      `// The client waits before a request that would
// exceed the limit, and repeats a 429 by itself.
const { items, response } = await petstore.pets.listPage();
const left = response.rateLimit?.remaining;
console.log(items.length, "pets;", left, "requests left");`,
      context,
    ),

  fetch: ({ baseUrl, key }) => `function sleep(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

async function fetchWithRetry(url, options, maxAttempts = 6) {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, options);
    if (response.status !== 429 || attempt === maxAttempts) return response;
    const retryAfter = Number(response.headers.get("Retry-After"));
    const jitter = Math.random() * 2 ** (attempt - 1);
    await sleep(retryAfter + jitter);
  }
}

const response = await fetchWithRetry("${baseUrl}/pets", {
  headers: { Authorization: "Bearer ${key}" },
});
const pets = await response.json();
const left = response.headers.get("X-RateLimit-Remaining");
console.log(pets.length, "pets;", left, "requests left");`,

  python: ({ baseUrl, key }) => `import random
import time

import requests


def get_with_retry(url, max_attempts=6, **options):
    for attempt in range(1, max_attempts + 1):
        response = requests.get(url, **options)
        if response.status_code != 429 or attempt == max_attempts:
            return response
        jitter = random.random() * 2 ** (attempt - 1)
        time.sleep(int(response.headers["Retry-After"]) + jitter)


response = get_with_retry(
    "${baseUrl}/pets",
    headers={"Authorization": "Bearer ${key}"},
)
pets = response.json()
left = response.headers["X-RateLimit-Remaining"]
print(len(pets), "pets;", left, "requests left")`,
};
