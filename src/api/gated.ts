/** Rejects requests without a credential on routes that need one. */
import type { FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";

/** Runs before the body is read, because the body is useless without a credential. @throws ActionError UNAUTHORIZED */
export async function requireAdmission({ context }: FastifyRequest): Promise<void> {
  if (!context.caller) throw new ActionError("UNAUTHORIZED");
}
