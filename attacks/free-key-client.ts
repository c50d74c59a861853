import { sendOnce } from "../harness/http-connection.ts";

/** What a client got that sends more requests than its key allows, to all servers in turns. */
export interface FreeKeyFigures {
  readonly allowed: number;
  readonly rejected: number;
  /** Neither 200 nor 429. */
  readonly failed: number;
}

interface FreeKeyOptions {
  readonly ports: readonly number[];
  readonly key: string;
  readonly seconds: number;
}

const INTERVAL_MS = 40;
/** All requests are in one window. */
const MAX_SECONDS = 40;
/** Where many requests fail, so many more are sent until one is rejected. */
const MAX_EXTRA_REQUESTS = 200;

/** A late response does not delay the next request. */
export async function measureFreeKey({ ports, key, seconds }: FreeKeyOptions): Promise<FreeKeyFigures> {
  const figures = { allowed: 0, rejected: 0, failed: 0 };
  const request = `GET /v1/pets?limit=1 HTTP/1.1\r\nHost: petstore.test\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const send = async (number: number) => {
    const port = ports[number % ports.length] ?? 0;
    const status = await sendOnce(port, request).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) figures.allowed++;
    else if (status === 429) figures.rejected++;
    else figures.failed++;
  };
  const count = (Math.min(seconds, MAX_SECONDS) * 1_000) / INTERVAL_MS;
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  for (let number = 0; number < count; number++) {
    await Bun.sleep(Math.max(0, startedAt + number * INTERVAL_MS - performance.now()));
    pending.push(send(number));
  }
  await Promise.all(pending);
  for (let number = 0; figures.rejected === 0 && number < MAX_EXTRA_REQUESTS; number++) await send(number);
  return figures;
}
