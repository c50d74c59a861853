import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { hostname } from "node:os";
import type { SettingsStore } from "../domain/ports.ts";
import type { ServerIdentity, ServerState, SignedUrl } from "../domain/servers.ts";
import { scheduler } from "../runtime/event-loop.ts";

const SECRET_BYTES = 32;
/** How long a signature is valid, before and after its time: clocks of servers differ. */
const VALID_MS = 30_000;
const REQUEST = /^Petstore-Server (\d{13})\.([\w-]{22})\.([\w-]{43})$/;
/** A server reads the secret so often: it may have been rotated. */
const READ_EVERY_MS = 1_000;
/** The secret before a rotation is accepted until all servers have read the new one and told of themselves with it. */
const REPLACED_MS = 10_000;

export const newNonce = (): string => randomBytes(16).toString("base64url");
export const newServerSecret = (): string => randomBytes(SECRET_BYTES).toString("base64url");

/** The header with the signature of a response. */
export const SIGNATURE_HEADER = "Petstore-Signature";

interface ServerRequest {
  /** Origin of the listener that it is for: whoever gets it can send it to no other. */
  readonly to: string;
  readonly method: string;
  readonly target: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

type Listed = Pick<ServerIdentity, "id" | "name">;

/** What the servers of a database, and the commands that can open it, know: they recognize one another by it. */
export class ServerSecret {
  #current: Buffer;
  /** The one before, for a moment. */
  #replaced: Buffer | undefined;

  constructor(secret: string) {
    this.#current = decode(secret);
  }

  /** The first server or command creates it. Of several that do so together, one wins and all use its secret. */
  static async open(settings: Pick<SettingsStore, "openSecret">): Promise<ServerSecret> {
    return new ServerSecret(await settings.openSecret(newServerSecret()));
  }

  /** From now on signs with another one. */
  replace(secret: string): void {
    this.#replaced = this.#current;
    this.#current = decode(secret);
    scheduler.setTimeout(() => (this.#replaced = undefined), REPLACED_MS).unref();
  }

  /** Follows rotations in the database, and calls `onChange` after each. What it returns ends that. */
  follow(settings: Pick<SettingsStore, "readSecret">, onChange: () => void): () => void {
    let isReading = false;
    const read = async () => {
      if (isReading) return;
      isReading = true;
      try {
        const secret = await settings.readSecret();
        if (secret !== undefined && secret !== this.#current.toString("base64url")) {
          this.replace(secret);
          onChange();
        }
      } catch {
        // The database is unavailable, or what it has is damaged: the secret stays as it was.
      } finally {
        isReading = false;
      }
    };
    const timer = scheduler.setInterval(() => void read(), READ_EVERY_MS);
    timer.unref();
    return () => timer.close();
  }

  /**
   * What a server with this URL for operators responds to a nonce. The machine is part of it: a program that has taken
   * the port of a server cannot pass the nonce on to a server on another machine.
   */
  proofOf(nonce: string, url: string, machine = hostname()): string {
    return sign(this.#current, "proof", nonce, new URL(url).origin, machine);
  }

  isProof(proof: string, nonce: string, { adminUrl, name }: { adminUrl: string; name: string }): boolean {
    return this.#isSigned(proof, "proof", nonce, new URL(adminUrl).origin, name);
  }

  /** What a server tells of its URL for operators. */
  urlOf({ id, name }: Listed, adminUrl: string, at: number): SignedUrl {
    const { origin } = new URL(adminUrl);
    return { adminUrl, signedAt: at, signature: sign(this.#current, "server", id, name, origin, `${at}`) };
  }

  /** Whether `urlOf` signed what a server tells, within 30 seconds of when it was heard. */
  isSigned({ id, name, adminUrl, signedAt = 0, signature = "", seenAt }: ServerState): boolean {
    if (typeof adminUrl !== "string" || Math.abs(seenAt - signedAt) > VALID_MS) return false;
    return this.#isSigned(signature, "server", id, name, new URL(adminUrl).origin, `${signedAt}`);
  }

  /** The `Authorization` of a request from one server, or from a command on its machine, to another server. */
  authorizationOf({ to, method, target, at }: ServerRequest): string {
    const nonce = newNonce();
    const signature = sign(this.#current, "request", to, method, target, `${at}`, nonce);
    return `Petstore-Server ${at}.${nonce}.${signature}`;
  }

  /** Whether `authorizationOf` made it for this request, within 30 seconds of `at`. */
  isAuthorized(authorization: string, { to, method, target, at }: ServerRequest): boolean {
    const [, sentAt = "", nonce = "", signature = ""] = REQUEST.exec(authorization) ?? [];
    return (
      Math.abs(at - Number(sentAt)) <= VALID_MS &&
      this.#isSigned(signature, "request", to, method, target, sentAt, nonce)
    );
  }

  /** The signature of a response to a request with this `Authorization`. */
  responseSignature(authorization: string, body: string): string {
    return sign(this.#current, "response", authorization, body);
  }

  isResponse(signature: string, authorization: string, body: string): boolean {
    return this.#isSigned(signature, "response", authorization, body);
  }

  #isSigned(signature: string, ...parts: readonly string[]): boolean {
    const secrets = [this.#current, ...(this.#replaced ? [this.#replaced] : [])];
    return secrets.some((secret) => isSameSecret(signature, sign(secret, ...parts)));
  }
}

function decode(secret: string): Buffer {
  const bytes = Buffer.from(secret, "base64url");
  if (bytes.length !== SECRET_BYTES) throw new Error("the secret of the servers in the database is damaged");
  return bytes;
}

/** No part but the last has a line break, so no two lists of parts are signed alike. */
function sign(secret: Buffer, ...parts: readonly string[]): string {
  return createHmac("sha256", secret).update(parts.join("\n")).digest("base64url");
}

/** In constant time. */
export function isSameSecret(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}
