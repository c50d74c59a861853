import { X509Certificate } from "node:crypto";
import { followSetting, type SettingFileReports } from "./follow-files.ts";
import { STORAGE_OPTIONS } from "./options.ts";
import { readFromFile } from "./parse-options.ts";
import { quotedPath } from "./quoted.ts";
import { readTextFile } from "./read-file.ts";
import type { StorageConfig } from "./storage.ts";
import { UsageError } from "./usage-error.ts";

/** How to connect to what servers share. A file may have changed it since the start. */
export interface StorageUrls {
  databaseUrl(): string | undefined;
  valkey(): { readonly urls: readonly string[]; readonly ca?: string };
}

/** How a command connects. Throws if the certificates are unreadable. */
export function storageUrlsOf({
  databaseUrl,
  limitsUrls: urls = [],
  limitsCaFile,
}: StorageConfig): StorageUrls {
  return {
    databaseUrl: () => databaseUrl,
    valkey: () => ({ urls, ...(limitsCaFile !== undefined && { ca: readAuthorities(limitsCaFile) }) }),
  };
}

/** How a server connects. Files that change are read again. Throws if the certificates are unreadable. */
export function followStorageUrls(
  storage: StorageConfig,
  reports: SettingFileReports,
): StorageUrls & { close(): void } {
  const { "database-url": databaseOption, "limits-url": limitsOption } = STORAGE_OPTIONS;
  const { databaseUrlFile, limitsUrlFile, limitsCaFile } = storage;
  const { urls: firstUrls, ca: firstCa } = storageUrlsOf(storage).valkey();
  const databaseUrl = followSetting(
    { setting: "database-url-file", file: databaseUrlFile, first: storage.databaseUrl },
    (file) => readFromFile(databaseOption, file),
    reports,
  );
  const urls = followSetting(
    { setting: "limits-url-file", file: limitsUrlFile, first: firstUrls },
    (file) => readFromFile(limitsOption, file),
    reports,
  );
  const ca = followSetting(
    { setting: "limits-ca", file: limitsCaFile, first: firstCa },
    readAuthorities,
    reports,
  );
  return {
    databaseUrl: () => databaseUrl.current,
    valkey: () => ({ urls: urls.current, ...(ca.current !== undefined && { ca: ca.current }) }),
    close() {
      for (const each of [databaseUrl, urls, ca]) each.close();
    },
  };
}

/** How to connect to the Valkey of an environment. Throws if the certificates are unreadable. */
export function valkeyOf(storage: StorageConfig, urls: StorageUrls = storageUrlsOf(storage)) {
  return { ...urls.valkey(), prefix: `petstore:${storage.environment}:` };
}

/** Reads the certificates of --limits-ca. Throws UsageError. */
export function readAuthorities(file: string): string {
  const text = readTextFile("--limits-ca", file);
  if (isCertificate(text)) return text;
  throw new UsageError(`--limits-ca is ${quotedPath(file)}; it is not a certificate in PEM format`);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== "";
  } catch {
    return false;
  }
}
