/** GraphQL arguments that many fields share. */
import { Arg, Int } from "type-graphql";
import { LIST_ITEMS_PER_PAGE_DEFAULT, LIST_ITEMS_PER_PAGE_MAX } from "../../limits.js";

export const OFFSET_DESCRIPTION = "Number of items to skip; 0 by default.";

/**
 * Returns the description of a `limit` argument.
 * @param fallback number of items if the argument is absent
 * @param max maximum of the argument
 */
export const createLimitDescription = (fallback = LIST_ITEMS_PER_PAGE_DEFAULT, max = LIST_ITEMS_PER_PAGE_MAX): string =>
  `Maximum number of items to return; ${fallback} by default. Values above ${max} are reduced to ${max}.`;

export const AppIdArgument = () => Arg("appId", () => Int, { description: "ID of the app." });

export const Limit = (fallback?: number, max?: number) =>
  Arg("limit", () => Int, { nullable: true, description: createLimitDescription(fallback, max) });

export const Offset = () => Arg("offset", () => Int, { nullable: true, description: OFFSET_DESCRIPTION });
