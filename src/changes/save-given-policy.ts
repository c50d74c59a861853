import type { Attribution } from "../domain/audit.ts";
import type { PolicyChange } from "../domain/policy.ts";
import type { PolicyStore } from "../domain/ports/policy.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import { repeat } from "../runtime/repeat.ts";
import type { ChangeFollower } from "./follow-changes.ts";

interface SaveOptions {
  readonly policies: Pick<PolicyStore, "updatePolicy">;
  /** What the settings of this server say. */
  readonly givenPolicy: PolicyChange;
  readonly by: () => Attribution;
  readonly changes: Pick<ChangeFollower, "applyNow">;
  /** Called at the first attempt that fails. */
  readonly onError: (error: unknown) => void;
}

/** The change of the policy that the settings of a server make when it starts. */
export interface GivenPolicyChange {
  readonly isStored: boolean;
  close(): Promise<void>;
}

const RETRY_MS = 1_000;

/**
 * Stores the limits, ban rules and shared values that this server is started with, for all servers. A server that
 * cannot write, for example on a full disk, starts with what is stored, and tries again.
 */
export async function saveGivenPolicy(options: SaveOptions): Promise<GivenPolicyChange> {
  const { policies, givenPolicy, by, changes, onError } = options;
  const failures = new FailureReporter(onError);
  const save = async () => {
    try {
      await policies.updatePolicy(givenPolicy, by());
      await changes.applyNow();
      return true;
    } catch (error) {
      failures.failed(error);
      return false;
    }
  };
  let isStored = await save();
  const saving = isStored
    ? undefined
    : repeat(RETRY_MS, async () => {
        isStored = await save();
        if (isStored) void saving?.close();
        return RETRY_MS;
      });
  return {
    get isStored() {
      return isStored;
    },
    close: async () => saving?.close(),
  };
}
