import type { ApiKey, Credential, NewKey } from "../../src/domain/api-keys.ts";
import { generateSecret, hashSecret } from "../../src/domain/secrets.ts";
import type { Environment } from "../../src/domain/environments.ts";
import type { Awaitable } from "../../src/runtime/awaitable.ts";
import type { StoredChanges } from "../../src/domain/ports/keys.ts";

/** The part of a key store that an Authenticator uses, in Maps. It counts lookups, and can be slow or fail. */
export class MapKeyStore {
  lookups = 0;
  /** Turns the credential that was found into the response. */
  respond: (credential: Credential | undefined) => Awaitable<Credential | undefined> = (found) => found;
  #keys = new Map<number, ApiKey & { revision: number; unbanRevision?: number }>();
  #secrets = new Map<string, { keyId: number; validUntil?: number }>();
  #revision = 0;
  timeline = 1;
  hasQuestions = false;
  /** Whether the changes cannot be read. */
  isCutOff = false;

  findCredential(secretHash: string): Awaitable<Credential | undefined> {
    this.lookups++;
    return this.respond(this.peek(secretHash));
  }

  /** Delays the responses to lookups until the test releases them. */
  delay() {
    const delayed: (() => void)[] = [];
    this.respond = (found) =>
      new Promise<Credential | undefined>((resolve) => delayed.push(() => resolve(found)));
    const release = () => {
      for (const resolve of delayed.splice(0)) resolve();
    };
    return {
      release,
      /** Releases those so far, and delays no later one. */
      end: () => {
        this.respond = (found) => Promise.resolve(found);
        release();
      },
    };
  }

  changesSince(since: number): StoredChanges {
    if (this.isCutOff) throw new Error("cut off");
    const keys = [...this.#keys.values()].filter(({ revision }) => revision > since);
    const kindOf = ({ unbanRevision = 0 }) => (unbanRevision > since ? "unban" : "key");
    const changed = keys.map((key) => ({ key, kind: kindOf(key) }) as const);
    return {
      revision: this.#revision,
      timeline: `${this.timeline}`,
      changed,
      hasQuestions: this.hasQuestions,
    };
  }

  /** Finds as findCredential does, and counts no lookup. */
  peek(secretHash: string): Credential | undefined {
    const found = this.#secrets.get(secretHash);
    const key = found && this.#keys.get(found.keyId);
    if (!key) return undefined;
    return found.validUntil === undefined ? { key } : { key, validUntil: found.validUntil };
  }

  /** A copy of the present state. The function that it returns makes it take over, on a timeline of its own. */
  copy(): () => void {
    const [keys, secrets, revision] = [new Map(this.#keys), new Map(this.#secrets), this.#revision];
    return () => {
      [this.#keys, this.#secrets, this.#revision] = [keys, secrets, revision];
      this.timeline++;
    };
  }

  create(key: Partial<NewKey & { id: number; environment: Environment }> = {}): {
    id: number;
    secret: string;
  } {
    const { id = this.#keys.size + 1, environment = "production", ...rest } = key;
    const secret = generateSecret(environment);
    this.#keys.set(id, {
      id,
      name: "test",
      labels: [],
      plan: "free",
      access: "write",
      createdAt: 0,
      revision: ++this.#revision,
      ...rest,
    });
    this.#secrets.set(hashSecret(secret), { keyId: id });
    return { id, secret };
  }

  rotate(id: number, overlapEndsAt: number): string {
    for (const secret of this.#secrets.values()) {
      if (secret.keyId === id) secret.validUntil = Math.min(secret.validUntil ?? Infinity, overlapEndsAt);
    }
    const secret = generateSecret("production");
    this.#secrets.set(hashSecret(secret), { keyId: id });
    this.update(id, {});
    return secret;
  }

  update(id: number, change: Partial<ApiKey>): void {
    const key = this.#keys.get(id);
    if (!key) throw new Error(`there is no key ${id}`);
    const revision = ++this.#revision;
    const unban = change.unbannedAt === undefined ? {} : { unbanRevision: revision };
    this.#keys.set(id, { ...key, ...change, ...unban, revision });
  }
}
