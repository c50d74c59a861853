import { userInfo } from "node:os";
import type { Actor } from "../domain/audit.ts";

/** The user who runs a command, for the audit trail. */
export function commandLineActor(): Actor {
  try {
    return { kind: "command line", name: userInfo().username };
  } catch {
    // A container may run as a user that the system has no entry for.
    return { kind: "command line" };
  }
}
