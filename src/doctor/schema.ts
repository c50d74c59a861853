import { check, type Finding } from "./finding.ts";

const schema = check("migrations");

export interface SchemaVersions {
  readonly schemaVersion: number;
  readonly supportedVersion: number;
}

export function schemaFinding({ schemaVersion, supportedVersion }: SchemaVersions): Finding {
  if (schemaVersion > supportedVersion) {
    return schema.error(
      `the schema has version ${schemaVersion}, and this release supports versions up to ${supportedVersion}`,
      "install the release that was used before, or a newer one",
    );
  }
  if (schemaVersion < supportedVersion) {
    return schema.warning(
      `the schema has version ${schemaVersion}, and the next start migrates it to ${supportedVersion}`,
      "make a backup before you start this release",
    );
  }
  return schema.ok(`the schema has version ${schemaVersion}, the newest`);
}
