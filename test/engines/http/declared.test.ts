import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { useAdminService } from "../../admin/admin-service.ts";
import { cleanUpAfterAll } from "../../cli/cli.ts";
import { declaredFieldCases, declaredParameterCases } from "../../contract/declared-cases.ts";

cleanUpAfterAll();
const onPostgres = async () => useAdminService({}, { databaseUrl: await postgresUrl() });
declaredFieldCases(await onPostgres(), async () => ({ PETSTORE_DATABASE_URL: await postgresUrl() }));
declaredParameterCases(await onPostgres());
