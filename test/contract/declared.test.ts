import { join } from "node:path";
import { useAdminService } from "../admin/admin-service.ts";
import { cleanUpAfterAll, cliDirectory } from "../cli/cli.ts";
import { declaredFieldCases, declaredParameterCases } from "./declared-cases.ts";

cleanUpAfterAll();
declaredFieldCases(await useAdminService(), async () => ({ PETSTORE_DATA: join(cliDirectory(), "data") }));
declaredParameterCases(await useAdminService());
