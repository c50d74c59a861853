import { CertificateAuthority } from "../../harness/certificates.ts";
import { runProgram } from "../../harness/child.ts";
import { MachineClock } from "../../harness/machine-clock.ts";
import { endEncryptedSessions, replaceCertificate } from "../../harness/postgres.ts";
import { executable, OPENSSL } from "../../harness/programs.ts";
import type { Server } from "../../harness/server.ts";

const HOST = "IP:127.0.0.1";
/** The certificate is issued this long before now, so that it is valid for a server whose clock is set back. */
const ISSUED_S = -100 * 86_400;
const ASK_EVERY_MS = 50;
/** How long a backend that began before the certificate was replaced may take to accept its client. */
const HANDSHAKE_MS = 500;
const APPLIED_WITHIN_MS = 30_000;

/** The certificates of PostgreSQL, and what clients need to verify them. */
export class DatabaseCertificates {
  readonly #authority = new CertificateAuthority(new MachineClock(ISSUED_S));
  readonly valid = this.#authority.issue(HOST);
  readonly expired = this.#authority.issue(HOST, "-days", "1");
  readonly untrusted = new CertificateAuthority().issue(HOST);
  /** The parameters at the end of a URL. */
  readonly parameters = `?sslmode=verify-full&sslrootcert=${this.#authority.caFile}`;

  /** Resolves when no client that verifies the certificate of the primary has a connection. */
  async break(databases: readonly Server[], primary: Server, what: "expired" | "untrusted"): Promise<void> {
    for (const database of databases) replaceCertificate(database, this[what]);
    await this.#until(primary, /verify error/i);
    for (let quietMs = 0; quietMs < HANDSHAKE_MS; quietMs += ASK_EVERY_MS) {
      if ((await endEncryptedSessions(primary)) > 0) quietMs = 0;
      await Bun.sleep(ASK_EVERY_MS);
    }
  }

  /** Resolves when clients can connect again. Throws if one could before. */
  async repair(databases: readonly Server[], primary: Server): Promise<void> {
    const sessions = await endEncryptedSessions(primary);
    for (const database of databases) replaceCertificate(database, this.valid);
    await this.#until(primary, /Verify return code: 0/);
    if (sessions > 0) throw new Error(`${sessions} connections in spite of the certificate before`);
  }

  /**
   * Waits for the outcome of a connection. The client is another program, because a failing handshake can end what this
   * process reads from its children.
   */
  async #until(primary: Server, outcome: RegExp): Promise<void> {
    const flags = ["-starttls", "postgres", "-connect", new URL(primary.url).host];
    const command = [executable(OPENSSL), "s_client", ...flags, "-CAfile", this.#authority.caFile];
    const deadline = performance.now() + APPLIED_WITHIN_MS;
    for (;;) {
      const { out, err } = await runProgram(command);
      if (outcome.test(out + err)) return;
      if (performance.now() > deadline) throw new Error(`PostgreSQL does not apply the certificate: ${err}`);
      await Bun.sleep(ASK_EVERY_MS);
    }
  }
}
