import type { Finding } from "../../src/doctor/finding.ts";
import type { InProcessCli } from "../cli/cli.ts";

/** Runs `petstore doctor`; the findings are by the name of the check. */
export async function diagnose(cli: InProcessCli, ...argv: string[]) {
  const anyPort = argv.includes("--port") ? [] : ["--port", "0"];
  const { code, out, err } = await cli.run(["doctor", "--json", ...anyPort, ...argv]);
  if (code === 2) throw new Error(err);
  const findings: Finding[] = JSON.parse(out);
  return { code, of: (check: string) => findings.filter((finding) => finding.check === check) };
}
