/** Interface of the proxy through which the pages of a browser context reach the network. The egress proxy implements it. */

/** Functions of a run that the proxy calls. Each `host` has the format `host:port`. */
export interface ProxyCallbacks {
  onHost(host: string): void;
  onRejected(host: string, reason: string): void;
  onConnected(host: string): void;
  /** Called before each connection and each plain HTTP request. If the result is false, the proxy rejects the request. */
  mayConnect(host: string): Promise<boolean>;
}

/** Port for only one browser context. It accepts connections only while a run is active. */
export interface ProxyPort {
  readonly proxyServer: string;
  startRun(run: ProxyCallbacks): void;
  /** Ends all connections before it returns, and rejects new connections. */
  endRun(): void;
  /** True if a page has sent a request to the port since `startRun`. */
  wasUsed(): boolean;
  /** True if a page has sent a request to the port after `endRun`. */
  wasUsedLate(): boolean;
  close(): void;
}
