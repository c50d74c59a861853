import { join } from "node:path";
import { useAdminService } from "../admin/admin-service.ts";
import { cleanUpAfterAll, cliDirectory } from "../cli/cli.ts";
import { declaredFieldCases } from "./declared-cases.ts";
import { declaredKeyCases } from "./declared-key-cases.ts";
import { listParameterCases } from "./list-parameter-cases.ts";

cleanUpAfterAll();
declaredFieldCases(await useAdminService(), async () => ({ PETSTORE_DATA: join(cliDirectory(), "data") }));
listParameterCases(await useAdminService());
const service = await useAdminService();
declaredKeyCases(service, () => ({ PETSTORE_DATA: service.dataDir }));
