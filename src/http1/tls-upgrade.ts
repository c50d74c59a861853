import type { Socket, SocketHandler } from "bun";

/** PEM. The certificate comes first, then its chain. */
export interface TlsCredentials {
  readonly cert: string;
  readonly key: string;
}

/** A list of one protocol: the length of its name, then the name (RFC 7301, 3.1). */
const ALPN_PROTOCOLS = "\x08http/1.1";

/**
 * Starts TLS on accepted connections. `Bun.listen` cannot change its certificate; a connection that is upgraded after
 * it was accepted gets the current one, and costs the same.
 */
export class TlsUpgrade {
  #secureContext: object;

  /** Throws if the certificate or the key is malformed. */
  constructor(credentials: TlsCredentials) {
    this.#secureContext = secureContextOf(credentials);
  }

  /** New connections get the certificate. Throws if it is malformed, and keeps the one before. */
  setCredentials(credentials: TlsCredentials): void {
    this.#secureContext = secureContextOf(credentials);
  }

  upgrade<Data>(socket: Socket<Data>, handlers: SocketHandler<Data>): Socket<Data> {
    const tls = { ALPNProtocols: ALPN_PROTOCOLS, secureContext: this.#secureContext };
    const options = { tls, isServer: true, data: socket.data, socket: handlers };
    const [, secureSocket] = socket.upgradeTLS<Data>(options);
    return secureSocket;
  }
}

/** `node:tls` is loaded when it is used: that takes 10 ms, which a server without TLS does not wait for. */
function secureContextOf(credentials: TlsCredentials): object {
  const { createSecureContext } = process.getBuiltinModule("node:tls");
  return createSecureContext({ ...credentials }).context;
}
