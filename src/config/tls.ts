import { createPrivateKey, X509Certificate } from "node:crypto";
import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import { followFiles } from "./follow-files.ts";
import { UsageError } from "./usage-error.ts";
import { readTextFile } from "./read-file.ts";
import { quotedPath } from "./quoted.ts";

/** The paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

interface TlsContents {
  readonly cert: string;
  readonly key: string;
}

/** Reads the certificate, followed by its chain, and the key, both in PEM. Throws UsageError. */
export function readTlsFiles({ certFile, keyFile }: TlsFiles): TlsContents {
  const cert = readTextFile("--tls-cert", certFile);
  const key = readTextFile("--tls-key", keyFile);
  const certificate = attempt(
    () => new X509Certificate(cert),
    `--tls-cert is ${quotedPath(certFile)}; it is not a certificate in PEM format`,
  );
  const privateKey = attempt(
    () => createPrivateKey(key),
    `--tls-key is ${quotedPath(keyFile)}; it is not a private key in PEM format without passphrase`,
  );
  if (certificate.checkPrivateKey(privateKey)) return { cert, key };
  throw new UsageError(
    `--tls-key ${quotedPath(keyFile)} is not the private key of --tls-cert ${quotedPath(certFile)}`,
  );
}

/** How long the second file of a certificate may take to follow the first. */
const COMPLETE_MS = 30_000;

interface TlsReports {
  onChange(contents: TlsContents): void;
  /** A program that renews a certificate writes one of the files after the other. */
  onIncomplete(error: unknown): void;
  onInvalid(error: unknown): void;
}

/** Follows the files of a certificate. */
export function followTlsFiles(files: TlsFiles, { onChange, onIncomplete, onInvalid }: TlsReports) {
  let invalidTimer: ScheduledTimer | undefined;
  const stop = followFiles(Object.values(files), {
    read: () => readTlsFiles(files),
    onChange(contents) {
      invalidTimer?.close();
      onChange(contents);
    },
    onError(error) {
      invalidTimer?.close();
      onIncomplete(error);
      invalidTimer = scheduler.setTimeout(() => onInvalid(error), COMPLETE_MS);
      invalidTimer.unref();
    },
  });
  return {
    close() {
      stop();
      invalidTimer?.close();
    },
  };
}

function attempt<T>(work: () => T, problem: string): T {
  try {
    return work();
  } catch {
    throw new UsageError(problem);
  }
}
