import type { Socket, SocketHandler } from "bun";

/** PEM files. The certificate comes first, then its chain. */
export interface TlsCertificate {
  readonly cert: string;
  readonly key: string;
}

/** The maximum of one peer. A handshake with RSA takes 0.7 ms, so one address uses less than a tenth of a core. */
export const MAX_HANDSHAKES_PER_SECOND = 100;
/** The ciphers of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325, 4.2). TLS 1.3 has no others. */
const CIPHERS = ["ECDSA", "RSA"].flatMap((signature) =>
  ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].map(
    (cipher) => `ECDHE-${signature}-${cipher}`,
  ),
);

/** A list of one protocol: the length of its name, then the name (RFC 7301, 3.1). */
const ALPN_PROTOCOLS = "\x08http/1.1";

/**
 * Starts TLS on an accepted connection. `Bun.listen` cannot change its certificate. A connection that is upgraded after
 * it was accepted uses the current one, at the same cost.
 */
export function startTls<Data>(
  socket: Socket<Data>,
  secureContext: object,
  handlers: SocketHandler<Data>,
): Socket<Data> {
  const tls = { ALPNProtocols: ALPN_PROTOCOLS, secureContext };
  const options = { tls, isServer: true, data: socket.data, socket: handlers };
  const [, secureSocket] = socket.upgradeTLS<Data>(options);
  return secureSocket;
}

/** `node:tls` is loaded when it is used, because that takes 10 ms. */
export function secureContextOf(credentials: TlsCertificate): object {
  const { createSecureContext } = process.getBuiltinModule("node:tls");
  return createSecureContext({ ...credentials, ciphers: CIPHERS.join(":"), minVersion: "TLSv1.2" }).context;
}
