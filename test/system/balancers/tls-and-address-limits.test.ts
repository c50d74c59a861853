import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect } from "node:tls";
import { CertificateAuthority } from "../../../harness/certificates.ts";
import { sendOnce } from "../../../harness/http-connection.ts";
import { haproxy, nginx, startLoadBalancer } from "../../../harness/load-balancer.ts";
import { startFakeServer } from "./fake-server.ts";

setDefaultTimeout(30_000);

const authority = new CertificateAuthority();
const certificate = authority.issue("IP:127.0.0.1");

/** Whether the handshake succeeds with this version of TLS at most. */
function accepts(port: number, maxVersion: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"): Promise<boolean> {
  return new Promise((resolve) => {
    const options = {
      host: "127.0.0.1",
      port,
      minVersion: "TLSv1" as const,
      maxVersion,
      rejectUnauthorized: false,
    };
    const socket = connect(options, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

describe.each([haproxy, nginx])("$executable", (kind) => {
  test("serves TLS 1.2 and 1.3 with the certificate, and Strict-Transport-Security", async () => {
    const server = await startFakeServer("responds");
    const servers = [server.port, server.port, server.port];
    const balancer = await startLoadBalancer(kind, servers, { certificate });
    const ca = readFileSync(authority.caFile, "utf8");
    const response = await fetch(`https://127.0.0.1:${balancer.port}/v1/pets`, { tls: { ca } });
    expect(response.status).toBe(200);
    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000");
    const versions = (["TLSv1.1", "TLSv1.2", "TLSv1.3"] as const).map((version) =>
      accepts(balancer.port, version),
    );
    expect(await Promise.all(versions)).toEqual([false, true, true]);
    await balancer.stop();
    server.stop();
  });

  test("an address that sends too much gets 429 in the API's format; other addresses are served", async () => {
    const server = await startFakeServer("responds");
    const servers = [server.port, server.port, server.port];
    const balancer = await startLoadBalancer(kind, servers, { addressLimit: 1 });
    const send = (from: string) => sendOnce(balancer.port, { path: "/v1/pets" }, from);
    // nginx lets a burst of 1,000 pass, so more than that is sent.
    let last = await send("127.0.0.9");
    for (let sent = 1; last.status === 200 && sent < 3_000; sent += 50) {
      const responses = await Promise.all(Array.from({ length: 50 }, () => send("127.0.0.9")));
      last = responses.find(({ status }) => status !== 200) ?? last;
    }
    expect({ status: last.status, body: JSON.parse(last.body) }).toEqual({
      status: 429,
      body: { code: "rate_limited", message: "Too many requests. Retry after 10 seconds.", status: 429 },
    });
    expect(last.headers).toMatchObject({ "content-type": "application/json", "retry-after": "10" });
    expect((await send("127.0.0.10")).status).toBe(200);
    await balancer.stop();
    server.stop();
  });
});
