import { followSetting, type FollowedSetting, type SettingFileReports } from "./follow-files.ts";
import { STORAGE_OPTIONS } from "./options.ts";
import { readFromFile } from "./parse-options.ts";
import type { StorageConfig } from "./storage.ts";

/** Follows the URL of PostgreSQL, which a file may change after the start; undefined on SQLite. */
export function followDatabaseUrl(
  { databaseUrl, databaseUrlFile }: StorageConfig,
  reports: SettingFileReports,
): FollowedSetting<string | undefined> {
  return followSetting(
    { setting: "database-url-file", file: databaseUrlFile, first: databaseUrl },
    (file) => readFromFile(STORAGE_OPTIONS["database-url"], file),
    reports,
  );
}
