/** The network connection of one browser context, as its pages use it. Implemented by the egress proxy. */

/** Callbacks of one run. Hosts are `host:port`. */
export interface ProxyCallbacks {
  /** Called once for each host that the run contacts. */
  onHost(host: string): void;
  /** Called for a host that was refused, with the reason. */
  onRefused(host: string, reason: string): void;
  /** Called for a host to which a connection was made. */
  onReached(host: string): void;
  /** Called before each connection, and before each request that is not in a tunnel. */
  mayConnect(host: string): Promise<boolean>;
}

/** A proxy port that only one context uses. It is closed except while a run is active. */
export interface ProxyPort {
  /** `http://host:port` */
  readonly proxyServer: string;
  /** Opens the port for a run. */
  startRun(run: ProxyCallbacks): void;
  /** Closes the port: ends every connection, and refuses later ones, before this returns. */
  endRun(): void;
  /** True if the run has sent anything since `startRun`. */
  wasUsed(): boolean;
  /** True if anything was sent after `endRun`. */
  wasUsedLate(): boolean;
  close(): void;
}
