import type { PostgresLocation } from "../data-location.ts";
import { followSetting, type FollowedSetting, type SettingFileReports } from "./follow-files.ts";
import { STORAGE_OPTIONS } from "./options.ts";
import { readFromFile } from "./parse-options.ts";

/** Follows the URL of PostgreSQL, which a file may change after the start. */
export function followDatabaseUrl(
  { url, urlFile }: Pick<PostgresLocation, "url" | "urlFile">,
  reports: SettingFileReports,
): FollowedSetting<string> {
  return followSetting(
    { setting: "database-url-file", file: urlFile, first: url },
    (file) => readFromFile(STORAGE_OPTIONS["database-url"], file),
    reports,
  );
}
