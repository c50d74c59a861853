import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { useAdminService } from "../../admin/admin-service.ts";
import { cleanUpAfterAll } from "../../cli/cli.ts";
import { declaredFieldCases } from "../../contract/declared-cases.ts";
import { declaredKeyCases } from "../../contract/declared-key-cases.ts";
import { listParameterCases } from "../../contract/list-parameter-cases.ts";

cleanUpAfterAll();
const onPostgres = async () => useAdminService({}, { databaseUrl: await postgresUrl() });
const databaseUrl = await postgresUrl();
declaredFieldCases(await onPostgres(), async () => ({ PETSTORE_DATABASE_URL: await postgresUrl() }));
listParameterCases(await onPostgres());
declaredKeyCases(await useAdminService({}, { databaseUrl }), () => ({ PETSTORE_DATABASE_URL: databaseUrl }));
