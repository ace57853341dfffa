/** Declares the argument `ifUpdatedAt`: a change is rejected if the resource has another version. */
import { Arg } from "type-graphql";
import type { ExpectedTags } from "../../rules/precondition.js";
import { DateTime } from "./leaf-types.js";

/** Precondition of a change: GraphQL's argument, or the entity tags of REST's `If-Match`. */
export type StatePrecondition = Date | ExpectedTags | null;

const description =
  "Rejects the change unless this is the current `updatedAt`; the error contains the current state. Null to change any state.";

export const IfUpdatedAt = () => Arg("ifUpdatedAt", () => DateTime, { nullable: true, description });

export const preconditionOf = (input: StatePrecondition): ExpectedTags =>
  input instanceof Date ? [input.toISOString()] : (input ?? undefined);
