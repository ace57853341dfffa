/**
 * Limits websockets: the running operations of each socket, and the sockets of each address. An operation counts from its request until its
 * last step has ended, even if the client has cancelled it.
 */
import { IDLE_SOCKETS_PER_ADDRESS, SOCKETS_PER_ADDRESS } from "../../limits.js";

/** An operation in progress on a socket, with the functions to call at its end. */
export class Operation {
  private readonly endings: (() => void)[] = [];
  private hasEnded = false;

  /** Calls `call` once the operation has ended. */
  whenEnded(call: () => void): void {
    if (this.hasEnded) call();
    else this.endings.push(call);
  }

  endOperation(): void {
    this.hasEnded = true;
    for (const call of this.endings.splice(0)) call();
  }
}

/** Counts the running operations of one websocket. */
export class Operations {
  private readonly open = new Set<Operation>();
  private latest: Operation | null = null;

  get count(): number {
    return this.open.size;
  }

  beginOperation(): Operation {
    const operation = new Operation();
    this.open.add(operation);
    this.latest = operation;
    operation.whenEnded(() => this.open.delete(operation));
    return operation;
  }

  /** Handles one message. An operation that `handle` starts before its first await ends when the returned promise settles. */
  async during(handle: () => Promise<void>): Promise<void> {
    this.latest = null;
    const handledMessage = handle();
    const operation = this.latest as Operation | null;
    await handledMessage.finally(() => operation?.endOperation());
  }
}

const SOCKET_LIMITS = { sockets: SOCKETS_PER_ADDRESS, idle: IDLE_SOCKETS_PER_ADDRESS };

/** Limits the sockets of one address, and the idle sockets among them. When too many are idle, a new socket closes the oldest idle one. */
export function createSocketBound<Link extends { operations: Pick<Operations, "count"> }>(
  close: (link: Link) => void,
  max = SOCKET_LIMITS,
) {
  /** Sockets by address, in the order in which they opened. */
  const byAddress = new Map<string, Set<Link>>();

  function removeLink(address: string, link: Link): void {
    const links = byAddress.get(address);
    links?.delete(link);
    if (links?.size === 0) byAddress.delete(address);
  }

  return {
    /** @returns a function to be called when the socket has closed */
    enter(address: string, link: Link): () => void {
      const links = byAddress.get(address) ?? new Set<Link>();
      byAddress.set(address, links.add(link));
      if (links.size > max.idle) {
        const idleLinks = [...links].filter(({ operations }) => operations.count === 0);
        const [oldest] = idleLinks;
        if (oldest && (idleLinks.length > max.idle || links.size > max.sockets)) {
          removeLink(address, oldest);
          close(oldest);
        }
      }
      return () => removeLink(address, link);
    },
  };
}
