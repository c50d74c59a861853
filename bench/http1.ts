/**
 * CPU time that `src/http1` takes for one GET, from the received bytes to the response text, without a socket.
 * Shows what it saves to keep the last header fields of a connection: `npx bun bench/http1.ts`.
 */
import { Connection, type ConnectionContext, type Socket } from "../src/http1/connection.ts";
import { Scheduler } from "../src/http1/scheduler.ts";

const REQUESTS = 200_000;
const ROUNDS = 6;
const CONNECTIONS = 64;

const HEADER_LINES = {
  "2 header fields": [
    "Host: 127.0.0.1",
    "Authorization: Bearer petstore_live_0123456789abcdefghijklmnopqrstuv",
  ],
  "9 header fields": [
    "Host: api.example.com",
    "Authorization: Bearer petstore_live_0123456789abcdefghijklmnopqrstuv",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
    "Accept: */*",
    "Accept-Encoding: gzip, deflate, br",
    "Accept-Language: en",
    "Connection: keep-alive",
    "X-Forwarded-For: 203.0.113.7",
    "X-Forwarded-Proto: https",
  ],
};

const response = {
  status: 200,
  headerLines: "Content-Type: application/json\r\n",
  body: "x".repeat(1_200),
} as const;

const context: ConnectionContext = {
  handler: {
    handle: ({ headers }) =>
      headers.get("authorization") === null ? { ...response, status: 401 } : response,
    handleError: () => ({ ...response, status: 500 }),
    protocolError: (status) => ({ ...response, status }),
  },
  uptimeSeconds: 0,
  commonLines: "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n",
  isShuttingDown: false,
  scheduler: new Scheduler(() => 0),
  traffic: { bytesReceived: 0, bytesSent: 0 },
};

const socket: Socket = {
  remoteAddress: "203.0.113.9",
  write: (data) => Buffer.byteLength(data),
  pause() {},
  resume() {},
  shutdown() {},
  end() {},
  terminate() {},
};

/** The best of several rounds: whatever else runs on the machine only makes a round longer. */
function cpuMicrosPerRequest(requests: readonly Buffer[]): number {
  const connections = Array.from({ length: CONNECTIONS }, () => new Connection(socket, context));
  let best = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < REQUESTS; i++) {
      const turn = Math.floor(i / CONNECTIONS) % requests.length;
      connections[i % CONNECTIONS]?.onData(requests[turn] ?? Buffer.alloc(0));
    }
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / REQUESTS);
  }
  return best;
}

for (const [title, headerLines] of Object.entries(HEADER_LINES)) {
  const request = ["GET /v1/pets HTTP/1.1", ...headerLines, "", ""].join("\r\n");
  const other = request.replace("Bearer petstore_live_0", "Bearer petstore_live_1");
  const repeated = cpuMicrosPerRequest([Buffer.from(request)]);
  const changing = cpuMicrosPerRequest([Buffer.from(request), Buffer.from(other)]);
  console.log(`${title}: ${repeated.toFixed(1)} µs repeated, ${changing.toFixed(1)} µs changing each time`);
}
