import { allKeys } from "../../key-store-arguments.ts";
import { afterAll, describe, expect, test } from "bun:test";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";

const authority = new CertificateAuthority();
const otherAuthority = new CertificateAuthority();
const server = await startPostgres({ tls: authority.issue("IP:127.0.0.1") });
afterAll(() => server.stop());

const CA = {
  right: `&sslrootcert=${authority.caFile}`,
  wrong: `&sslrootcert=${otherAuthority.caFile}`,
  none: "",
};

/** Opens the store as a server does, and uses each of its pools. */
async function open(url: string): Promise<"opened"> {
  const { clientStore, keys, storedValues, close } = await openPostgres(url);
  try {
    await allKeys(keys);
    await clientStore.createPet({ name: "Rex", categoryId: 1n }, 0);
    await storedValues.saveValues({ "public-url": "http://a" });
    return "opened";
  } finally {
    await close();
  }
}

describe("sslmode", () => {
  test.each([
    ["verify-full", "right", "opened"],
    ["verify-full", "wrong", "unable to verify the first certificate"],
    ["verify-full", "none", "unable to verify the first certificate"],
    ["verify-ca", "right", "opened"],
    ["verify-ca", "wrong", "unable to verify the first certificate"],
    ["require", "none", "opened"],
  ] as const)("%s with the %s authority: %s", async (mode, ca, outcome) => {
    const opening = open(`${server.url}?sslmode=${mode}${CA[ca]}`);
    if (outcome === "opened") expect(await opening).toBe(outcome);
    else await expect(opening).rejects.toThrow(outcome);
  });

  test("verify-full rejects a certificate that does not name the host, and verify-ca accepts it", async () => {
    const url = server.url.replace("127.0.0.1", "localhost");
    await expect(open(`${url}?sslmode=verify-full${CA.right}`)).rejects.toThrow(
      "Hostname/IP does not match certificate's altnames",
    );
    expect(await open(`${url}?sslmode=verify-ca${CA.right}`)).toBe("opened");
  });

  test("an authority that cannot be read is an error that names the database", async () => {
    await expect(open(`${server.url}?sslmode=verify-full&sslrootcert=/missing.pem`)).rejects.toThrow(
      `cannot open the database ${new URL(server.url).host}/postgres: Unable to access caFile path`,
    );
  });
});
