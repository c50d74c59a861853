import { withNewSteps } from "../sql/migration-steps.ts";
import { RELEASED_ON_SQLITE } from "./released-steps.ts";

export const SQLITE_MIGRATIONS = withNewSteps(RELEASED_ON_SQLITE, ({ sqlite }) => sqlite);
