import type { Command } from "./command.ts";
import { keysCreate } from "./keys-create.ts";
import { keysList } from "./keys-list.ts";
import { keysRevoke } from "./keys-revoke.ts";
import { keysRoll } from "./keys-roll.ts";
import { keysSetPlan } from "./keys-set-plan.ts";
import { keysShow } from "./keys-show.ts";
import { keysUnban } from "./keys-unban.ts";
import { openapi } from "./openapi.ts";
import { serve } from "./serve.ts";

/** In the order of the overview. */
export const COMMANDS: readonly Command[] = [
  serve,
  keysCreate,
  keysList,
  keysShow,
  keysRevoke,
  keysRoll,
  keysSetPlan,
  keysUnban,
  openapi,
];
