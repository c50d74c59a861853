/** An error keeps the service from working, a warning may do so later. */
export type Level = "ok" | "warning" | "error";

export interface Finding {
  /** What was checked, such as `open files`. */
  readonly check: string;
  readonly level: Level;
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** The findings of one check. */
export interface Check {
  ok(message: string): Finding;
  warning(message: string, remedy: string): Finding;
  error(message: string, remedy: string): Finding;
}

export function check(name: string): Check {
  return {
    ok: (message) => ({ check: name, level: "ok", message }),
    warning: (message, remedy) => ({ check: name, level: "warning", message, remedy }),
    error: (message, remedy) => ({ check: name, level: "error", message, remedy }),
  };
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
