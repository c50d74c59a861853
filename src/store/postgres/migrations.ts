import { withNewSteps } from "../sql/migration-steps.ts";
import { RELEASED_ON_POSTGRES } from "./released-steps.ts";

export const POSTGRES_MIGRATIONS = withNewSteps(RELEASED_ON_POSTGRES, ({ postgres }) => postgres);
