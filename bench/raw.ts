/** One request over a connection of its own, byte for byte as wrk sends it, and the answer as it came. */
export interface RawReply {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** Head and body together. */
  readonly bytes: number;
}

const TIMEOUT_MS = 5_000;

/** Rejects when nobody listens, when the connection breaks, and when no answer comes. */
export function exchange(origin: string, request: string): Promise<RawReply> {
  const { hostname, port } = new URL(origin);
  const { promise, resolve, reject } = Promise.withResolvers<RawReply>();
  const timer = setTimeout(
    () => reject(new Error(`${origin} did not answer in ${TIMEOUT_MS} ms`)),
    TIMEOUT_MS,
  );
  let received = Buffer.alloc(0);
  const connected = Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(request),
      data(_socket, chunk) {
        received = Buffer.concat([received, chunk]);
        const reply = parse(received);
        if (reply !== undefined) resolve(reply);
      },
      close: () => reject(new Error(`${origin} closed the connection`)),
      error: (_socket, error) => reject(error),
    },
  });
  connected.catch(reject);
  return promise.finally(async () => {
    clearTimeout(timer);
    await connected.then(
      (socket) => socket.terminate(),
      () => {},
    );
  });
}

function parse(received: Buffer): RawReply | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [statusLine = "", ...lines] = received.subarray(0, end).toString("latin1").split("\r\n");
  const headers = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
  });
  const length = Number(headerOf({ headers }, "content-length") ?? 0);
  const body = received.subarray(end + 4);
  if (body.length < length) return undefined;
  return { status: Number(statusLine.split(" ")[1]), headers, body: body.toString(), bytes: received.length };
}

export function headerOf({ headers }: Pick<RawReply, "headers">, name: string): string | undefined {
  return headers.find(([given]) => given.toLowerCase() === name)?.[1];
}
