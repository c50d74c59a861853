import type { StoredChanges, KeyStore } from "../domain/ports/keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Authenticator } from "../auth/authenticator.ts";

/** What others have changed since the changes were read before. */
interface NewChanges extends Pick<StoredChanges, "changed" | "hasQuestions"> {
  /** Whether there is a new revision, of a key or of the policy. */
  readonly hasChanged: boolean;
  /** The changes were made after this time of the steady clock. */
  readonly after: number;
  /** Set if another copy or an earlier state of the database has taken over. */
  readonly replacement?: DatabaseReplacement;
}

/** The new copy lacks changes if its revision is lower. With a higher one it may lack some and have others. */
export interface DatabaseReplacement {
  readonly revision: number;
  readonly revisionBefore: number;
}

interface ReaderOptions {
  readonly keys: Pick<KeyStore, "changesSince">;
  readonly authenticator: Pick<Authenticator, "keysChanged">;
  readonly clock: Pick<Clock, "steadyNow">;
}

/** Reads the changes from the database, and hands those of keys to the authenticator. */
export class ChangeReader {
  readonly #options: ReaderOptions;
  /** The last state that was read. */
  #seen: Pick<StoredChanges, "revision" | "timeline">;
  /** When it was read, by the steady clock. */
  #readAt: number;

  private constructor(options: ReaderOptions, seen: StoredChanges, readAt: number) {
    this.#options = options;
    this.#seen = seen;
    this.#readAt = readAt;
  }

  /** Must be called before the authenticator caches anything. */
  static async open(options: ReaderOptions): Promise<ChangeReader> {
    const readAt = options.clock.steadyNow();
    const seen = await options.keys.changesSince(Number.MAX_SAFE_INTEGER);
    return new ChangeReader(options, seen, readAt);
  }

  /**
   * Reads the changes since the last call. Another copy of the database may lack some of them and use their revisions
   * for other changes, so all keys are looked up again after it has taken over. Calls may overlap: one that comes after
   * another one has read changes reads once more.
   */
  async read(): Promise<NewChanges> {
    const { keys, authenticator, clock } = this.#options;
    const readAt = clock.steadyNow();
    const before = this.#seen;
    const { changed, hasQuestions, ...seen } = await keys.changesSince(before.revision);
    if (this.#seen !== before) return this.read();
    const after = this.#readAt;
    const isReplaced = seen.timeline !== before.timeline || seen.revision < before.revision;
    const hasChanged = isReplaced || changed.length > 0 || seen.revision !== before.revision;
    if (hasChanged) {
      authenticator.keysChanged(isReplaced ? "all" : changed.map(({ key }) => key.id));
      this.#seen = seen;
    }
    this.#readAt = Math.max(after, readAt);
    const replacement = { revision: seen.revision, revisionBefore: before.revision };
    return { after, changed, hasQuestions, hasChanged, ...(isReplaced && { replacement }) };
  }
}
