/** What a storm hears of one request. */
export interface Heard {
  readonly status: number;
  readonly remaining: number;
}

/** Connections that a listener is asked to take at once. */
const WAVE = 100;

/**
 * As many requests as sockets, spread evenly over the addresses. All sockets are open before the first is written
 * to, so that every request is under way before the first answer is read.
 */
export async function storm(urls: readonly string[], key: string, count: number): Promise<Heard[]> {
  const calls: Call[] = [];
  while (calls.length < count) {
    const wave = Math.min(WAVE, count - calls.length);
    calls.push(...(await Promise.all(Array.from({ length: wave }, (_, i) => dial(urls[i % urls.length])))));
  }
  const answers = calls.map(({ answer }) => answer);
  for (const { ask } of calls)
    ask(`GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  return await Promise.all(answers);
}

interface Call {
  ask(request: string): void;
  readonly answer: Promise<Heard>;
}

async function dial(url = ""): Promise<Call> {
  const { hostname, port } = new URL(url);
  const answer = Promise.withResolvers<Heard>();
  let text = "";
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(socket, chunk) {
        text += chunk.toString();
        if (!text.includes("\r\n\r\n")) return;
        answer.resolve(read(text));
        socket.end();
      },
      close: () => answer.reject(new Error("closed without an answer")),
      error: (_, error) => answer.reject(error),
    },
  });
  return { ask: (request) => void socket.write(request), answer: answer.promise };
}

function read(head: string): Heard {
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]),
    remaining: Number(/^x-ratelimit-remaining: (\d+)/im.exec(head)?.[1]),
  };
}
