/** Rejects requests without a credential on routes that need one. */
import type { FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";

/**
 * Rejects a request without a credential, before its body is read.
 * @throws ActionError UNAUTHORIZED
 */
export async function requireCredential({ context }: FastifyRequest): Promise<void> {
  if (!context.caller) throw new ActionError("UNAUTHORIZED");
}
