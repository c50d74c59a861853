import { readFileSync, statSync } from "node:fs";
import { SETTINGS } from "../config/options.ts";
import { type Options, readFromFile, type SettingsWith, variableOf } from "../config/parse-options.ts";
import { TOKEN_FILES } from "../operator/sign-in/setting-tokens.ts";
import { check, type Finding, problemsOr, messageWithoutSecrets } from "./finding.ts";

/** A setting that names a file which the operator writes. */
export type FileSetting = SettingsWith<typeof SETTINGS, { isFollowed: boolean }>;

interface SettingsFile {
  /** Whether whoever reads the file learns a secret. */
  readonly isSecret: boolean | ((file: string) => boolean);
  /** Throws if the contents are unusable. */
  readonly read: (file: string) => unknown;
}

const isRead = () => {};

/** The user of the server may read a file as a member of its group. */
const EVERYBODY = 0o007;

const FILES: Readonly<Record<FileSetting, SettingsFile>> = {
  "env-file": { isSecret: hasSecretVariable, read: isRead },
  "database-url-file": { isSecret: true, read: (file) => readFromFile(SETTINGS["database-url"], file) },
  "admin-token-file": { isSecret: true, read: (file) => readFromFile(TOKEN_FILES.bootstrap, file) },
  "metrics-token-file": { isSecret: true, read: (file) => readFromFile(TOKEN_FILES.metrics, file) },
  "oidc-client-secret-file": {
    isSecret: true,
    read: (file) => readFromFile(SETTINGS["oidc-client-secret"], file),
  },
  "webhook-secret-file": { isSecret: true, read: (file) => readFromFile(SETTINGS["webhook-secret"], file) },
  // The check of TLS reads both together.
  "tls-cert": { isSecret: false, read: isRead },
  "tls-key": { isSecret: true, read: isRead },
};

const SECRET_VARIABLES = Object.entries(SETTINGS satisfies Options).flatMap(([flag, { type }]) =>
  type.secret ? variableOf(flag) : [],
);

function hasSecretVariable(file: string): boolean {
  const names = SECRET_VARIABLES.join("|");
  return new RegExp(`^\\s*(?:${names})\\s*=\\s*\\S`, "m").test(readFileSync(file, "utf8"));
}

const files = check("settings files");

/** Checks the files that settings name. `pathOf` returns the path that a setting has. */
export function checkSettingsFiles(pathOf: (setting: FileSetting) => string | undefined): Finding[] {
  const given = Object.entries(FILES).flatMap(([setting, file]) => {
    // The keys are those of the table.
    const path = pathOf(setting as FileSetting);
    return path === undefined ? [] : [{ ...file, setting: `--${setting}`, path }];
  });
  if (given.length === 0) return [];
  const paths = given.map(({ path }) => path).join(", ");
  return problemsOr(
    files.ok(`${paths}: usable, and not everybody can read those with a secret`),
    given.map(problemOf),
  );
}

function problemOf({ isSecret, read, setting, path }: SettingsFile & { setting: string; path: string }) {
  try {
    read(path);
    const mode = statSync(path).mode;
    const isHidden = (mode & EVERYBODY) === 0;
    if (isHidden || !(typeof isSecret === "boolean" ? isSecret : isSecret(path))) return undefined;
    return files.warning(`every user can read ${path} (${setting}), which has a secret`, `chmod o= ${path}`);
  } catch (error) {
    return files.error(
      messageWithoutSecrets(error),
      `correct the file of ${setting}; a running server keeps its last contents`,
    );
  }
}
