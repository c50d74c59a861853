import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Variables } from "../../../src/config/parse-options.ts";
import type { Certificate } from "../../../trials/harness/server.ts";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { cleanUp, resultOf, spawnPetstore, cliDirectory } from "../../cli/cli.ts";
import { spawnOnTerminal } from "../../cli/terminal.ts";

afterAll(cleanUp);

const TOKEN = "pet_admin_0123456789abcdefghijklmnopqrstuvwxyz";
const authority = new CertificateAuthority();
const trusted = { NODE_EXTRA_CA_CERTS: authority.caFile };
const servers: Bun.Server<undefined>[] = [];
let url = "";
beforeAll(() => void (url = serve(authority.issue("DNS:localhost"))));
afterAll(() => Promise.all(servers.map((server) => server.stop(true))));

/** What a server responds to whoever has the token. */
function serve({ certFile, keyFile }: Certificate): string {
  const server = Bun.serve({
    port: 0,
    tls: { cert: Bun.file(certFile), key: Bun.file(keyFile) },
    fetch: ({ headers }) =>
      Response.json(
        headers.get("authorization") === `Bearer ${TOKEN}`
          ? { signedIn: true, environment: "production", version: "1.0.0" }
          : { signedIn: false },
      ),
  });
  servers.push(server);
  return `https://localhost:${server.port}`;
}

function whoami(server: string, variables: Variables) {
  return resultOf(
    spawnPetstore(["whoami"], {
      variables: { PETSTORE_SERVER: server, PETSTORE_TOKEN: TOKEN, ...variables },
    }),
  );
}

test("certificates are verified, and what is wrong with one is said", async () => {
  expect(await whoami(url, trusted)).toMatchObject({ code: 0, err: "" });
  const unknown = `petstore: ${url} is not trusted: its certificate is not from an authority that this machine trusts; name the file of its authority in NODE_EXTRA_CA_CERTS\n`;
  for (const variables of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: "0" }])
    expect(await whoami(url, variables)).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining(unknown),
    });
  const other = serve(authority.issue("DNS:other.example"));
  expect((await whoami(other, trusted)).err).toContain("its certificate is for another host name;");
  const expired = serve(authority.issue("DNS:localhost", "-days", "-1"));
  expect((await whoami(expired, trusted)).err).toContain("its certificate has expired;");
});

test("a token that is typed is not shown, and is in no argument of the process", async () => {
  const config = cliDirectory();
  const { child, output, until } = spawnOnTerminal(["login", url], { ...trusted, XDG_CONFIG_HOME: config });
  await until(`Token for ${url}: `);
  expect(readFileSync(`/proc/${child.pid}/cmdline`, "latin1")).not.toContain(TOKEN);
  child.terminal?.write(`${TOKEN}\r`);
  expect(await child.exited).toBe(0);
  expect(output()).toContain(`You are logged in to ${url} (production).`);
  expect(output()).not.toContain(TOKEN.slice(0, 20));
  expect(readFileSync(join(config, "petstore/login.json"), "utf8")).toContain(TOKEN);
  const { code, out } = await resultOf(
    spawnPetstore(["whoami", "--json"], { variables: { ...trusted, XDG_CONFIG_HOME: config } }),
  );
  expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ server: url })]);
});

test("a proxy does not get a token that is for this machine", async () => {
  let proxied = 0;
  const proxy = Bun.serve({ port: 0, fetch: () => new Response(String(++proxied)) });
  const plain = Bun.serve({
    port: 0,
    fetch: () => Response.json({ signedIn: true, environment: "staging" }),
  });
  servers.push(proxy, plain);
  const result = await whoami(plain.url.origin, { HTTP_PROXY: proxy.url.origin });
  expect([result.code, proxied]).toEqual([0, 0]);
});
