/** What an answer says of a caller's standing. */
export interface Answer {
  readonly status: number;
  /** Of an error body. */
  readonly code: string | undefined;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfter: number;
}

export async function ask(url: string, key: string): Promise<Answer> {
  const response = await fetch(`${url}/pets?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
  const body: unknown = await response.json();
  const number = (name: string) => Number(response.headers.get(name));
  return {
    status: response.status,
    code: codeOf(body),
    limit: number("x-ratelimit-limit"),
    remaining: number("x-ratelimit-remaining"),
    retryAfter: number("retry-after"),
  };
}

export function codeOf(body: unknown): string | undefined {
  return typeof body === "object" && body !== null && "code" in body ? String(body.code) : undefined;
}

/** Asks each until its answer is as wanted; all of them must be so within a second. */
export async function everywhere(
  urls: readonly string[],
  key: string,
  isWanted: (answer: Answer) => boolean,
): Promise<void> {
  const deadline = performance.now() + 1_000;
  await Promise.all(
    urls.map(async (url) => {
      for (;;) {
        const answer = await ask(url, key);
        if (isWanted(answer)) return;
        if (performance.now() > deadline) throw new Error(`after a second still ${JSON.stringify(answer)}`);
        await Bun.sleep(20);
      }
    }),
  );
}
