import { messageOf } from "../runtime/message-of.ts";
import { maskSecretsAndPasswords } from "../domain/masks.ts";

/** An error means that the service does not work; a warning means that it may fail later. */
export type Level = "ok" | "warning" | "error";

export interface Finding {
  /** The subject of the check, such as `open files`. */
  readonly check: string;
  readonly level: Level;
  readonly message: string;
  /** What the operator can do. */
  readonly remedy?: string;
}

/** A problem, if there is one. */
export type PossibleFinding = Finding | false | undefined;

/** Makes the findings of one check. */
export function check(name: string) {
  const problem = (level: Level) => (message: string, remedy: string) => ({
    check: name,
    level,
    message,
    remedy,
  });
  return {
    ok: (message: string): Finding => ({ check: name, level: "ok", message }),
    warning: problem("warning"),
    error: problem("error"),
  };
}

/** Returns the problems that were found, or `ok` if there are none. */
export function problemsOr(ok: Finding, problems: readonly PossibleFinding[]): Finding[] {
  const found = problems.filter((problem) => problem !== false && problem !== undefined);
  return found.length > 0 ? found : [ok];
}

export function messageWithoutSecrets(error: unknown): string {
  return maskSecretsAndPasswords(messageOf(error));
}
