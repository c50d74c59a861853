import { Api } from "../api/api.ts";
import { ADMIN_ERRORS } from "./errors.ts";
import { ADMIN_BASE_PATH, ADMIN_OPERATIONS } from "./operations.ts";

/** The admin API of a server. Its callers need the table of operations alone, without a router and errors. */
export const ADMIN_API = new Api({
  basePath: ADMIN_BASE_PATH,
  errors: ADMIN_ERRORS,
  operations: ADMIN_OPERATIONS,
});
