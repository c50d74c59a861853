import SwaggerParser from "@apidevtools/swagger-parser";

const { info, paths } = await SwaggerParser.validate("openapi.json");
process.stdout.write(`${info.title} ${info.version} is valid: ${Object.keys(paths).length} paths\n`);
