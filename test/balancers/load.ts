import { type Answer, type Asking, Unanswered, Wire } from "./wire.ts";

export interface Load {
  /** Ends it, and tells how it went. */
  stop(): Promise<Outcome>;
}

export interface Outcome {
  readonly answered: readonly Answer[];
  /** Everything but an answer of 200 or 201. */
  readonly failed: readonly string[];
}

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  /** The nth request of all. */
  readonly request: (n: number) => Asking;
  /** A new connection for each request; otherwise each connection is kept. */
  readonly afresh?: boolean;
}

/** Asks as fast as it is answered, and repeats nothing. */
export function startLoad({ port, connections, request, afresh = false }: LoadOptions): Load {
  const answered: Answer[] = [];
  const failed: string[] = [];
  const end = new AbortController();
  let sent = 0;

  const work = async () => {
    let wire: Wire | undefined;
    while (!end.signal.aborted) {
      const asking = request(sent++);
      try {
        if (!wire?.isOpen) wire = await Wire.open(port);
        const answer = await wire.send(asking);
        if (answer.status === 200 || answer.status === 201) answered.push(answer);
        else failed.push(`${asking.method} ${answer.status} ${answer.body}`);
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error;
        failed.push(`${asking.method} ${error.message}`);
        wire?.close();
      }
      if (afresh) wire?.close();
    }
    wire?.close();
  };
  const workers = Array.from({ length: connections }, work);
  return {
    async stop() {
      end.abort();
      await Promise.all(workers);
      return { answered, failed };
    },
  };
}
