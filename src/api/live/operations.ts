/**
 * Limits the running operations of each websocket, and the websockets of each network address. An operation counts
 * until all its work has ended, even if the client has cancelled it.
 */
import { IDLE_SOCKETS_PER_ADDRESS, SOCKETS_PER_ADDRESS } from "../../limits.js";

export class SocketOperation {
  private readonly endCallbacks: (() => void)[] = [];
  private hasEnded = false;

  callWhenEnded(callback: () => void): void {
    if (this.hasEnded) callback();
    else this.endCallbacks.push(callback);
  }

  endOperation(): void {
    this.hasEnded = true;
    for (const callback of this.endCallbacks.splice(0)) callback();
  }
}

/** Counts the running operations of one websocket. */
export class SocketOperations {
  private readonly runningOperations = new Set<SocketOperation>();
  private latestOperation: SocketOperation | null = null;

  get count(): number {
    return this.runningOperations.size;
  }

  beginOperation(): SocketOperation {
    const operation = new SocketOperation();
    this.runningOperations.add(operation);
    this.latestOperation = operation;
    operation.callWhenEnded(() => this.runningOperations.delete(operation));
    return operation;
  }

  /**
   * Handles one message. If `handle` starts an operation before its first `await`, the operation ends when the promise of `handle` settles.
   */
  async handleMessage(handle: () => Promise<void>): Promise<void> {
    this.latestOperation = null;
    const handlePromise = handle();
    const operation = this.latestOperation as SocketOperation | null;
    await handlePromise.finally(() => operation?.endOperation());
  }
}

const SOCKET_LIMITS_PER_ADDRESS = { sockets: SOCKETS_PER_ADDRESS, idle: IDLE_SOCKETS_PER_ADDRESS };

/**
 * Limits the open websockets and the idle websockets of each network address. If a new websocket exceeds a limit, the oldest idle websocket
 * is closed. A new websocket is idle, so it is closed if all others have an operation.
 */
export class SocketsPerAddressLimiter<Connection extends { operations: Pick<SocketOperations, "count"> }> {
  /** Websockets by network address, the earliest first. */
  private readonly connectionsByAddress = new Map<string, Set<Connection>>();

  constructor(
    private readonly close: (connection: Connection) => void,
    private readonly limits = SOCKET_LIMITS_PER_ADDRESS,
  ) {}

  private removeConnection(address: string, connection: Connection): void {
    const connections = this.connectionsByAddress.get(address);
    connections?.delete(connection);
    if (connections?.size === 0) this.connectionsByAddress.delete(address);
  }

  /**
   * Counts a new websocket.
   * @returns a function to call when the websocket has closed
   */
  addSocket(address: string, connection: Connection): () => void {
    const connections = this.connectionsByAddress.get(address) ?? new Set<Connection>();
    this.connectionsByAddress.set(address, connections.add(connection));
    if (connections.size > this.limits.idle) {
      const idleConnections = [...connections].filter(({ operations }) => operations.count === 0);
      const [oldest] = idleConnections;
      if (oldest && (idleConnections.length > this.limits.idle || connections.size > this.limits.sockets)) {
        this.removeConnection(address, oldest);
        this.close(oldest);
      }
    }
    return () => this.removeConnection(address, connection);
  }
}
