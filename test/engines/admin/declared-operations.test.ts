import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { testChangingOperations } from "../../admin/operation-cases.ts";

/* What an operation changes on SQLite, it changes on PostgreSQL. */

await testChangingOperations({ databaseUrl: await postgresUrl() });
