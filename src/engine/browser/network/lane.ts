/** The way out of one browser context as the pages see it. Knows no proxy: whoever opens lanes decides what they reach. */

/** What is told and asked about a run's connections. Hosts are `host:port`. */
export interface LaneRun {
  /** Each host that is contacted, once. */
  onHost(host: string): void;
  /** A host to which there is no connection, and why in words. */
  onRefused(host: string, reason: string): void;
  /** A host to which a connection was made. */
  onReached(host: string): void;
  /** Asked before each connection, and before each request that is not in a tunnel. */
  mayConnect(host: string): Promise<boolean>;
}

/** The only way out of one context: a proxy port that is this context's alone. Shut but while a run is under way. */
export interface Lane {
  /** `http://host:port` */
  readonly proxyServer: string;
  /** Opens it for a run. */
  begin(run: LaneRun): void;
  /** Shuts it: ends every connection, and refuses every later one, before this returns. */
  end(): void;
  /** Whether anything was asked of the lane since `begin`. */
  used(): boolean;
  /** Whether any of it was asked after `end`. */
  usedLate(): boolean;
  close(): void;
}
