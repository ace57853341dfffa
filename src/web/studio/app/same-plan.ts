/** Comparison of two plans of a promotion. Pure; stages-page.tsx and the tests use it. */

interface Part {
  kind: string;
  name: string;
}

type Plan = Readonly<Record<"created" | "changed" | "removed" | "missing", readonly Part[] | null>>;

const LISTS = ["created", "changed", "removed", "missing"] as const;
const partsOf = (parts: readonly Part[] | null): string =>
  JSON.stringify((parts ?? []).map(({ kind, name }) => [kind, name]).sort());

/** True if both plans name the same parts, in any order. */
export const isSamePlan = (one: Plan, other: Plan): boolean =>
  LISTS.every((list) => partsOf(one[list]) === partsOf(other[list]));
