import { expect, test } from "bun:test";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { useService } from "../service.ts";

const service = await useService({ maxConnectionsPerAddress: 1 });

test("any 503: a connection above the maximum of its address, with the reason and without rate limit headers", async () => {
  const port = Number(new URL(service.url).port);
  const get = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`;
  const first = new RawConnection(port);
  await first.write(get);
  expect(await first.response()).toStartWith("HTTP/1.1 200 ");
  const second = new RawConnection(port);
  await second.write(get);
  const text = await second.rest();
  expect(text).toStartWith("HTTP/1.1 503 Service Unavailable\r\n");
  expect(text).toContain("\r\nRetry-After: 1\r\n");
  expect(text).toContain("\r\nX-Content-Type-Options: nosniff\r\n");
  expect(text).not.toContain("X-RateLimit");
  const message = "Your address has too many open connections; reuse them. Retry after 1 second.";
  expect(text).toEndWith(JSON.stringify({ code: "unavailable", message, status: 503 }));
  first.socket.destroy();
});
