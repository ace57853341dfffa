/** The argument by which a change names the state that it started from. */
import { Arg } from "type-graphql";
import type { Precondition } from "../../rules/precondition.js";
import { DateTime } from "./leaf-types.js";

/** GraphQL's argument, or the entity tags of REST's `If-Match`. */
export type StateGiven = Date | Precondition | null;

const description = "Refused with what stands now where the last change is another one than at this `updatedAt`.";

export const IfUpdatedAt = () => Arg("ifUpdatedAt", () => DateTime, { nullable: true, description });

export const preconditionOf = (given: StateGiven): Precondition =>
  given instanceof Date ? [given.toISOString()] : (given ?? undefined);
