import type { Subject } from "../../domain/rate-limit.ts";
import { withoutSecrets } from "./connection.ts";
import type { Session } from "./session.ts";

export type Turn = (state: "lost" | "back", cause?: unknown) => void;

export interface KeeperOptions {
  /** Opens a session in which this subject is seen to be counted. */
  open(subject: Subject): Promise<Session>;
  /** Called before the turn is told. */
  onSession(session: Session | undefined): void;
  readonly onTurn: Turn | undefined;
}

/** With a few tries a second, a server that is back is used again well within one. */
const RETRY_EVERY_MS = 250;
/** A session that had lasted so long may have ended by a hiccup, so it is tried at once whether that is over. */
const LASTING_MS = 1_000;
const ANY_SUBJECT: Subject = "key:0";

/**
 * Holds the one session there is, or goes on trying to open one. A session that failed once is never used again: on its
 * connection, everything would have to wait behind what the server has not answered.
 */
export class Reconnector {
  readonly #options: KeeperOptions;
  #session: Session | undefined;
  #sessionSince = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** A server that is not there delays a start a little, and does not prevent it. */
  async start(): Promise<void> {
    try {
      this.#use(await this.#options.open(ANY_SUBJECT));
    } catch (cause) {
      this.#retryIn(RETRY_EVERY_MS, ANY_SUBJECT);
      this.#tell("lost", cause);
    }
  }

  lose(session: Session, cause: unknown, subject = ANY_SUBJECT): void {
    if (session !== this.#session) return;
    this.#session = undefined;
    session.close();
    this.#options.onSession(undefined);
    const hadLasted = performance.now() - this.#sessionSince >= LASTING_MS;
    this.#retryIn(hadLasted ? 0 : RETRY_EVERY_MS, subject);
    this.#tell("lost", cause);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#session?.close();
    this.#session = undefined;
  }

  #use(session: Session): void {
    if (this.#isClosed) return session.close();
    this.#session = session;
    this.#sessionSince = performance.now();
    session.onEnd(() => this.lose(session, new Error("the connection was closed")));
    this.#options.onSession(session);
  }

  #retryIn(ms: number, subject: Subject): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#retry(subject), ms);
    this.#timer.unref();
  }

  async #retry(subject: Subject): Promise<void> {
    const session = await this.#options.open(subject).catch(() => undefined);
    if (session === undefined) return this.#retryIn(RETRY_EVERY_MS, subject);
    this.#use(session);
    this.#tell("back");
  }

  #tell(state: "lost" | "back", cause?: unknown): void {
    if (this.#isClosed) return;
    this.#options.onTurn?.(state, cause === undefined ? undefined : withoutSecrets(cause));
  }
}
