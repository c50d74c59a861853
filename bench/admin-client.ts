import { HttpConnection } from "../harness/http-connection.ts";
import type { AdminPage } from "./admin-pages.ts";

export interface Call {
  readonly ms: number;
  readonly bytes: number;
  /** The longest that a client of the public API waited for a response meanwhile. */
  readonly waitMs: number;
}

export interface AdminClient {
  call(page: AdminPage): Promise<Call>;
  close(): void;
}

/** Sends GET /healthz, one after the other, until `isOver`; gives the longest time. */
export async function longestWait(connection: HttpConnection, isOver: () => boolean): Promise<number> {
  let longest = 0;
  while (!isOver()) {
    const sentAt = performance.now();
    await connection.send({ path: "/healthz" });
    longest = Math.max(longest, performance.now() - sentAt);
  }
  return longest;
}

export interface Target {
  readonly url: string;
  readonly adminUrl: string;
  readonly token: string;
}

/**
 * Its connections are open before the time starts, as a browser's are. The client of the public API has had a response
 * before: what it waits for then is the work of the listener for operators, not its own first request.
 */
export async function connect({ url, adminUrl, token }: Target): Promise<AdminClient> {
  const { host, port } = new URL(adminUrl);
  const connections = await Promise.all([1, 2, 3].map(() => HttpConnection.open(Number(port))));
  const publicConnection = await HttpConnection.open(Number(new URL(url).port));
  await publicConnection.send({ path: "/healthz" });
  const head = `HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;

  async function callOnce({ name, steps }: AdminPage): Promise<{ ms: number; bytes: number }> {
    const startedAt = performance.now();
    let bytes = 0;
    for (const paths of steps) {
      const responses = await Promise.all(
        paths.map((path, i) => connections[i]?.sendText(`GET ${path} ${head}`)),
      );
      for (const response of responses) {
        if (response?.status !== 200) throw new Error(`${name}: ${response?.status} ${response?.body}`);
        bytes += response.bytes;
      }
    }
    return { ms: performance.now() - startedAt, bytes };
  }

  return {
    async call(page) {
      let isOver = false;
      const wait = longestWait(publicConnection, () => isOver);
      const called = await callOnce(page);
      isOver = true;
      return { ...called, waitMs: await wait };
    },
    close() {
      for (const connection of [...connections, publicConnection]) connection.close();
    },
  };
}
