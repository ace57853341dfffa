/** Generates documents and queries from few names and values, so that queries match documents. */
import fc from "fast-check";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Query = Record<string, unknown>;

const NAMES = ["a", "b", "c"] as const;
const TEXTS = ["", "a", "A", "ab", "Abc", "é", "É", "5", "b\nc", "it's", '"', "\\", "%", "_", "straße"];

const number = fc.oneof(fc.integer({ min: -3, max: 6 }), fc.constantFrom(0.5, 1.5, -2.25, 1e21, 100));
export const scalar = fc.oneof(
  { weight: 3, arbitrary: number },
  { weight: 3, arbitrary: fc.constantFrom(...TEXTS) },
  fc.boolean(),
  fc.constant(null),
);
const object = (inner: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.dictionary(fc.constantFrom(...NAMES), inner, { maxKeys: 3, noNullPrototype: true });
const leafValue: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: scalar },
  object(scalar),
  fc.array(scalar, { maxLength: 3 }),
);
const items: fc.Arbitrary<Json> = fc.array(fc.oneof(scalar, object(leafValue)), { maxLength: 3 });
export const value: fc.Arbitrary<Json> = fc.oneof({ weight: 4, arbitrary: scalar }, object(leafValue), items);

/** Generates documents without lists in lists: see the table of differences in docs/reference/data-sources.md. */
export const document = fc.dictionary(fc.constantFrom(...NAMES, "tags"), value, {
  maxKeys: 4,
  noNullPrototype: true,
}) as fc.Arbitrary<Record<string, Json>>;

export const path = fc.constantFrom(
  "a",
  "b",
  "c",
  "tags",
  "a.b",
  "a.c",
  "b.a",
  "a.b.c",
  "tags.a",
  "a.0",
  "tags.1",
  "a.0.b",
  "a.b.0",
  "z",
  "z.a",
);

const ordered = fc.oneof(number, fc.constantFrom(...TEXTS), fc.boolean());
const REGEX_PATTERNS = [
  "a",
  "^a",
  "b$",
  "a|é",
  "[a-c]+",
  "\\d",
  "^\\w*$",
  ".",
  "^$",
  "a{1,2}b",
  "(?:a)(b)",
  "\\W",
  "[^a]",
  "\\s",
  "b.c",
  "\\ba",
  "(?=a)ab?",
  "(?!a).",
  "ß",
  "\\\\",
  "é",
];

const regex = fc
  .tuple(fc.constantFrom(...REGEX_PATTERNS), fc.constantFrom(undefined, "i", "s"))
  .map(([$regex, $options]) => ($options === undefined ? { $regex } : { $regex, $options }));

const plain: fc.Arbitrary<Query> = fc.oneof(
  fc.record({ $eq: value }),
  fc.record({ $ne: value }),
  fc.record({ $gt: ordered }),
  fc.record({ $gte: ordered }),
  fc.record({ $lt: ordered }),
  fc.record({ $lte: ordered }),
  fc.record({ $gte: ordered, $lt: ordered }),
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $nin: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $all: fc.array(ordered, { minLength: 1, maxLength: 2 }) }),
  fc.record({ $size: fc.integer({ min: 0, max: 3 }) }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $type: fc.constantFrom("number", "string", "bool", "array") }),
  fc.record({ $mod: fc.tuple(fc.constantFrom(2, 3, -2), fc.integer({ min: -1, max: 2 })) }),
  regex,
);

const elementCondition = fc.oneof(
  fc.record({ $gt: ordered, $lt: ordered }),
  fc.record({ $eq: scalar }),
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }),
);

const { where } = fc.letrec<{ where: Query; field: Query }>((tie) => ({
  field: fc.oneof(
    { depthSize: "small", maxDepth: 2 },
    plain,
    plain,
    fc.record({ $not: plain }),
    fc.record({ $elemMatch: elementCondition }),
    fc.record({
      $elemMatch: fc.dictionary(fc.constantFrom(...NAMES), fc.oneof(plain, scalar as never), {
        minKeys: 1,
        maxKeys: 2,
        noNullPrototype: true,
      }),
    }),
  ),
  where: fc.oneof(
    { depthSize: "small", maxDepth: 3, depthIdentifier: "where" },
    fc.tuple(path, tie("field")).map(([name, field]) => ({ [name]: field })),
    fc.tuple(path, scalar).map(([name, operand]) => ({ [name]: operand })),
    fc
      .tuple(path, path, tie("field"), tie("field"))
      .map(([firstPath, secondPath, first, second]) => ({ [firstPath]: first, [secondPath]: second })),
    fc.record({ $and: fc.array(tie("where"), { minLength: 1, maxLength: 3 }) }),
    fc.record({ $or: fc.array(tie("where"), { minLength: 1, maxLength: 3 }) }),
    fc.record({ $nor: fc.array(tie("where"), { minLength: 1, maxLength: 2 }) }),
  ),
}));

export { where };

const column = fc.constantFrom("a", "b", "c", "tags");
const expression = fc.oneof(
  column.map((name) => `$${name}`),
  column.map((name) => ({ $convertToNumber: `$${name}` })),
  fc.integer({ min: 2, max: 3 }).map(($literal) => ({ $literal })),
);
const accumulator = fc
  .tuple(fc.constantFrom("$sum", "$avg", "$min", "$max", "$first", "$push"), expression)
  .map(([operator, operand]) => ({ [operator]: operand }));
/** Generates conditions without $mod and $all. mingo converts null and false to numbers for $mod, and needs a list for $all. */
const simpleMatch = fc
  .tuple(
    column,
    plain.filter((field) => !("$mod" in field || "$all" in field)),
  )
  .map(([name, field]) => ({ $match: { [name]: field } }));
const group = fc
  .tuple(
    fc.oneof(
      fc.constant(null),
      column.map((name) => `$${name}`),
    ),
    accumulator,
    accumulator,
  )
  .map(([_id, x, y]) => ({ $group: { _id, x, y } }));
const project = fc
  .tuple(column, column, expression)
  .map(([firstPath, secondPath, made]) => ({ $project: { [firstPath]: 1, [secondPath]: 1, made } }));
const sort = fc.tuple(column, fc.constantFrom(1, -1)).map(([name, sign]) => ({ $sort: { [name]: sign } }));

/** Generates documents with only scalars, because MongoDB has special rules for lists in sums and sorts. */
export const flatDocument = fc.dictionary(fc.constantFrom("a", "b", "c", "tags"), scalar, {
  maxKeys: 4,
  noNullPrototype: true,
}) as fc.Arbitrary<Record<string, Json>>;

export const aggregate: fc.Arbitrary<Query[]> = fc
  .tuple(
    fc.option(simpleMatch, { nil: undefined }),
    fc.option(sort, { nil: undefined }),
    fc.option(fc.record({ $limit: fc.integer({ min: 1, max: 8 }) }), { nil: undefined }),
    fc.constantFrom(null, "group", "project", "count"),
    group,
    project,
  )
  .map(([first, sorted, limited, last, grouped, projected]) => {
    const stages = [first, sorted, limited].filter((stage) => stage !== undefined) as Query[];
    if (last === "group") stages.push(grouped);
    if (last === "project") stages.push(projected);
    if (last === "count" || stages.length === 0) stages.push({ $count: "n" });
    return stages;
  });
