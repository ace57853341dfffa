/** Declares the argument `ifUpdatedAt`: the service rejects a change if the resource was updated at another time. */
import { Arg } from "type-graphql";
import type { ExpectedVersions } from "../../rules/precondition.js";
import { DateTime } from "./leaf-types.js";

/**
 * Condition under which the service makes a change: the time in GraphQL's argument `ifUpdatedAt`, or the entity tags in REST's `If-Match`
 * header.
 */
export type ChangePrecondition = Date | ExpectedVersions | null;

const IF_UPDATED_AT_DESCRIPTION =
  "Rejects the change unless this is the current `updatedAt`; the error contains the current state. Null to change any state.";

export const IfUpdatedAtArgument = () =>
  Arg("ifUpdatedAt", () => DateTime, { nullable: true, description: IF_UPDATED_AT_DESCRIPTION });

export const toExpectedVersions = (input: ChangePrecondition): ExpectedVersions =>
  input instanceof Date ? [input.toISOString()] : (input ?? undefined);
