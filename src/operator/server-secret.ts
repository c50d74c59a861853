import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { hostname } from "node:os";
import type { SettingsStore } from "../domain/ports.ts";
import type { ServerIdentity, ServerState, SignedUrl } from "../domain/servers.ts";
import { scheduler } from "../runtime/event-loop.ts";

const SECRET_BYTES = 32;
/** How long a signature is valid, before and after its time, because the clocks of servers differ. */
const VALID_MS = 30_000;
const REQUEST = /^Petstore-Server (\d{13})\.([\w-]{22})\.([\w-]{43})$/;
/** How often a server reads the secret, which may have been rotated. */
const READ_EVERY_MS = 1_000;
/**
 * How long the previous secret is accepted after a rotation: until all servers have read the new one and signed with
 * it.
 */
const REPLACED_MS = 10_000;

export const newNonce = (): string => randomBytes(16).toString("base64url");
export const newServerSecret = (): string => randomBytes(SECRET_BYTES).toString("base64url");

/** The header with the signature of a response. */
export const SIGNATURE_HEADER = "Petstore-Signature";

interface ServerRequest {
  /** The origin of the listener that the request is for, so that its receiver cannot forward it to another one. */
  readonly to: string;
  readonly method: string;
  readonly target: string;
  /** The time in milliseconds since the epoch. */
  readonly at: number;
}

type Listed = Pick<ServerIdentity, "id" | "name">;

/** The secret by which the servers of a database, and the commands that can open it, recognize one another. */
export class ServerSecret {
  #current: Buffer;
  /** The previous secret, while it is still accepted. */
  #replaced: Buffer | undefined;

  constructor(secret: string) {
    this.#current = decode(secret);
  }

  /**
   * Opens the secret. The first server or command creates it. If several do so together, all use the secret of one of
   * them.
   */
  static async open(settings: Pick<SettingsStore, "openSecret">): Promise<ServerSecret> {
    return new ServerSecret(await settings.openSecret(newServerSecret()));
  }

  /** Makes later signatures use another secret. */
  replace(secret: string): void {
    this.#replaced = this.#current;
    this.#current = decode(secret);
    scheduler.setTimeout(() => (this.#replaced = undefined), REPLACED_MS).unref();
  }

  /** Follows rotations in the database, and calls `onChange` after each. Returns a function that stops it. */
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
        // The database is unavailable or its secret is damaged, so the current secret remains.
      } finally {
        isReading = false;
      }
    };
    const timer = scheduler.setInterval(() => void read(), READ_EVERY_MS);
    timer.unref();
    return () => timer.close();
  }

  /**
   * The response of a server with this URL for operators to a nonce. It includes the machine, so that a program that
   * has taken the port of a server cannot forward the nonce to a server on another machine.
   */
  proofOf(nonce: string, url: string, machine = hostname()): string {
    return sign(this.#current, "proof", nonce, new URL(url).origin, machine);
  }

  isProof(proof: string, nonce: string, { adminUrl, name }: { adminUrl: string; name: string }): boolean {
    return this.#isSigned(proof, "proof", nonce, new URL(adminUrl).origin, name);
  }

  /** The signed URL for operators that a server announces. */
  urlOf({ id, name }: Listed, adminUrl: string, at: number): SignedUrl {
    const { origin } = new URL(adminUrl);
    return { adminUrl, signedAt: at, signature: sign(this.#current, "server", id, name, origin, `${at}`) };
  }

  /** Whether `urlOf` signed the URL of a server, within 30 seconds of when it was received. */
  isSigned({ id, name, adminUrl, signedAt = 0, signature = "", seenAt }: ServerState): boolean {
    if (typeof adminUrl !== "string" || Math.abs(seenAt - signedAt) > VALID_MS) return false;
    return this.#isSigned(signature, "server", id, name, new URL(adminUrl).origin, `${signedAt}`);
  }

  /** The `Authorization` header of a request from a server, or from a command on its machine, to another server. */
  authorizationOf({ to, method, target, at }: ServerRequest): string {
    const nonce = newNonce();
    const signature = sign(this.#current, "request", to, method, target, `${at}`, nonce);
    return `Petstore-Server ${at}.${nonce}.${signature}`;
  }

  /** Whether `authorizationOf` made the header for this request, within 30 seconds of `at`. */
  isAuthorized(authorization: string, { to, method, target, at }: ServerRequest): boolean {
    const [, sentAt = "", nonce = "", signature = ""] = REQUEST.exec(authorization) ?? [];
    return (
      Math.abs(at - Number(sentAt)) <= VALID_MS &&
      this.#isSigned(signature, "request", to, method, target, sentAt, nonce)
    );
  }

  /** The signature of a response to a request with this `Authorization` header. */
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

/** Signs parts. Only the last one may have line breaks, so different lists of parts have different signatures. */
function sign(secret: Buffer, ...parts: readonly string[]): string {
  return createHmac("sha256", secret).update(parts.join("\n")).digest("base64url");
}

/** Compares two secrets in constant time. */
export function isSameSecret(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}
