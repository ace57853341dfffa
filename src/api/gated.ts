/** The first refusal of every route that wants a credential. */
import type { FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";

/** Before the body is read: without a credential nothing of it matters. @throws UNAUTHORIZED */
export async function gated({ context }: FastifyRequest): Promise<void> {
  if (!context.caller) throw new ActionError("UNAUTHORIZED");
}
