/** Interface of the proxy through which the pages of a browser context reach the network. The egress proxy implements it. */

/** Callbacks of a run. The format of hosts is `host:port`. */
export interface ProxyCallbacks {
  /** Called once for each host that the run contacts. */
  onHost(host: string): void;
  /** Called with the reason when the proxy rejects a host. */
  onRejected(host: string, reason: string): void;
  /** Called for a host when the proxy has connected to it. */
  onReached(host: string): void;
  /**
   * Called before each connection, and before each plain HTTP request. If it resolves with false, the proxy rejects the
   * connection or request.
   */
  mayConnect(host: string): Promise<boolean>;
}

/** A proxy port that only one browser context uses. It is closed except while a run is active. */
export interface ProxyPort {
  /** URL of the proxy port: `http://host:port`. */
  readonly proxyServer: string;
  startRun(run: ProxyCallbacks): void;
  /** Closes the port. When this function returns, every connection has ended, and the port rejects new ones. */
  endRun(): void;
  /** True if pages have sent anything since `startRun`. */
  wasUsed(): boolean;
  /** True if pages have sent anything after `endRun`. */
  wasUsedLate(): boolean;
  close(): void;
}
