/**
 * Limits the requests in progress: per credential, and per network address for visitors and for requests without a credential. A request
 * above the limit waits in a queue before the service reads its body. It leaves the queue if the client disconnects.
 */
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createClientDisconnectedError } from "../../errors.js";
import {
  REQUESTS_IN_PROGRESS_PER_ADDRESS,
  REQUESTS_IN_PROGRESS_PER_CREDENTIAL,
  REQUESTS_IN_PROGRESS_PER_VISITOR,
} from "../../limits.js";
import { isPageCaller } from "../../rules/access.js";
import { getAddressBlock, getRateLimitKey } from "../../rules/address-block.js";
import type { AccessCheckInput } from "./access-checks.js";

export interface RequestLimiter {
  /** Waits for a slot, and returns a function that frees it. @throws REQUEST_INVALID if the client disconnects first */
  acquireSlot(
    request: Pick<AccessCheckInput, "caller" | "address">,
    disconnectSignal: () => AbortSignal,
  ): Promise<() => void>;
}

const MAX_CONCURRENT_REQUESTS = {
  credential: REQUESTS_IN_PROGRESS_PER_CREDENTIAL,
  visitor: REQUESTS_IN_PROGRESS_PER_VISITOR,
  address: REQUESTS_IN_PROGRESS_PER_ADDRESS,
};

export function createRequestLimiter(limits = MAX_CONCURRENT_REQUESTS): RequestLimiter {
  const createSemaphore = (max: number) => new FairSemaphore(Number.POSITIVE_INFINITY, max);
  const credentialSemaphore = createSemaphore(limits.credential);
  const visitorSemaphore = createSemaphore(limits.visitor);
  // Separate semaphores, so that requests without a credential do not delay visitors from the same network address.
  const visitorAddressSemaphore = createSemaphore(limits.address);
  const anonymousAddressSemaphore = createSemaphore(limits.address);

  async function acquireVisitorSlot(
    holder: string,
    address: string,
    disconnectSignal: () => AbortSignal,
  ): Promise<() => void> {
    const releaseVisitorSlot = await visitorSemaphore.enter(holder, disconnectSignal);
    try {
      const releaseAddressSlot = await visitorAddressSemaphore.enter(address, disconnectSignal);
      return () => {
        releaseAddressSlot();
        releaseVisitorSlot();
      };
    } catch (error) {
      releaseVisitorSlot();
      throw error;
    }
  }

  return {
    async acquireSlot({ caller, address = "" }, disconnectSignal) {
      try {
        if (!caller) return await anonymousAddressSemaphore.enter(getAddressBlock(address), disconnectSignal);
        if (!isPageCaller(caller)) return await credentialSemaphore.enter(caller.credentialId, disconnectSignal);
        return await acquireVisitorSlot(
          getRateLimitKey({ ...caller, address }),
          getAddressBlock(address),
          disconnectSignal,
        );
      } catch {
        throw createClientDisconnectedError();
      }
    },
  };
}
