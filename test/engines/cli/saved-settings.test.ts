import { afterAll, expect, test } from "bun:test";
import { CertificateAuthority } from "../../certificates.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { cleanUp, EXECUTABLE, InProcessCli, spawnTracked, temporaryDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

const LIMITS = ["--free-limits", "7/80"];
const CREATE = ["keys", "create", "--name", "app", "--plan", "free"];

test("on PostgreSQL and Valkey, commands use the settings of the server after it has stopped", async () => {
  const cli = new InProcessCli();
  const database = await postgresUrl();
  const storage = ["--database-url", database, "--limits-url", await valkeyUrl()];
  const { url, stop } = await cli.serve([...LIMITS, ...storage]);
  await stop();
  const { out } = await cli.run([...CREATE, ...storage]);
  expect(out).toContain("free plan, 7 requests per minute, 80 per day");
  expect(out).toContain(`curl -i ${url}/pets -H`);

  // A URL from a file that can be read only once is read only once.
  const line = '"$0" keys create --name x --plan free --database-url-file <(echo "$1")';
  const child = spawnTracked(["bash", "-c", line, EXECUTABLE, database], { cwd: temporaryDirectory() });
  expect(await child.stdout.text()).toContain("free plan, 7 requests per minute, 80 per day");
});

test("the URL of a server with a certificate is https", async () => {
  const cli = new InProcessCli();
  const { certFile, keyFile } = new CertificateAuthority().issue("IP:127.0.0.1");
  const { url, stop } = await cli.serve(["--tls-cert", certFile, "--tls-key", keyFile]);
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v1$/);
  expect((await cli.run(CREATE)).out).toContain(`curl -i ${url}/pets -H`);
  await stop();
});
