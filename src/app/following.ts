/* What a server follows: the changes in the database, and the files of its certificate. */

import type { Authenticator } from "../auth/authenticator.ts";
import type { ChangeReader } from "../changes/change-reader.ts";
import { type ChangeFollower, followChanges } from "../changes/follow-changes.ts";
import type { TlsFiles } from "../config/tls.ts";
import type { HttpServer, TlsCertificate } from "../http1/index.ts";
import { logKeyChanges } from "../observe/event-reports.ts";
import type { Closable, ServerContext } from "./context.ts";

export function startFollowing(
  { adapters, clock, log }: ServerContext,
  authenticator: Authenticator,
  reader: ChangeReader,
): ChangeFollower {
  const { rateLimiter, policies, applyPolicy, petJson } = adapters;
  return followChanges({
    reader,
    authenticator,
    rateLimiter,
    clock,
    readPolicy: () => policies.readPolicy(),
    applyPolicy,
    followStore: () => petJson.checkOtherProcesses?.(),
    onChanges: (changed) => logKeyChanges(log, changed, clock.now()),
    onReplacement(replacement) {
      if (replacement.revision < replacement.revisionBefore)
        log.event("database.changes-lost", { ...replacement });
    },
    onUnreadable: (error) => log.event("key-changes.unreadable", { error }),
    onReadable: () => log.event("key-changes.readable"),
    onUnban: (keyId) => log.event("key.unbanned", { keyId }),
    onUnbanError: (keyId, error) => log.event("key.unban-failed", { keyId, error }),
  });
}

interface FollowedCertificate {
  readonly files: TlsFiles;
  /** What the listeners use at first. */
  readonly first: TlsCertificate;
}

/** Gives the listeners a certificate that has changed. */
export async function followCertificate(
  { files, first }: FollowedCertificate,
  servers: readonly Pick<HttpServer, "setTlsCertificate">[],
  { clock, log }: ServerContext,
): Promise<Closable> {
  const { followTlsFiles } = await import("../config/tls.ts");
  const { watchCertificate } = await import("../observe/certificate-watch.ts");
  const reports = watchCertificate({ file: files.certFile, cert: first.cert, clock, log });
  const following = followTlsFiles(files, {
    ...reports,
    onChange(certificate) {
      for (const server of servers) server.setTlsCertificate(certificate);
      reports.onChange(certificate);
    },
  });
  return { close: () => [following, reports].forEach((each) => each.close()) };
}
