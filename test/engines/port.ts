const ATTEMPTS = 5;

/** A port that was free a moment ago; something else may take it before it is used. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** For servers that cannot be asked to find a port themselves. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(freePort());
    } catch (error) {
      if (attempt === ATTEMPTS || !/already in use/i.test(String(error))) throw error;
    }
  }
}
