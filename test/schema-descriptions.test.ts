/** Checks the descriptions of the GraphQL schema: every type, field, argument, input field and enum value has one, in plain English. */
import { expect } from "chai";
import { introspectionFromSchema } from "graphql";
import { loadSchema } from "../src/api/graphql/schema.js";

interface DescribedPart {
  path: string;
  description?: string | null | undefined;
}

interface NamedField {
  name: string;
  description?: string | null | undefined;
}

/** A type as introspection returns it. Lists that do not apply to the kind of the type are null. */
interface Members extends NamedField {
  fields?: readonly (NamedField & { args: readonly NamedField[] })[] | null;
  inputFields?: readonly NamedField[] | null;
  enumValues?: readonly NamedField[] | null;
}

function partsOf({ name, description, fields, inputFields, enumValues }: Members): DescribedPart[] {
  const members = [...(fields ?? []), ...(inputFields ?? []), ...(enumValues ?? [])];
  const given = (fields ?? []).flatMap((field) =>
    field.args.map((argument) => ({ ...argument, path: `${name}.${field.name}(${argument.name})` })),
  );
  return [
    { path: name, description },
    ...members.map((member) => ({ ...member, path: `${name}.${member.name}` })),
    ...given,
  ];
}

/** Matches a description that begins like a clause instead of a sentence, or that contains a word that is not plain English. */
const NOT_PLAIN =
  /^(what|who|whom|whether|how|where|of|when)\b|\b(whoever|whomever|whom|nobody|somebody|anew|hence|thereof|unless given|told|alone)\b/i;

describe("descriptions of the GraphQL schema", () => {
  let parts: DescribedPart[];

  before(async () => {
    const { __schema } = introspectionFromSchema(await loadSchema());
    parts = __schema.types.filter(({ name }) => !name.startsWith("__")).flatMap(partsOf);
  });

  const failing = (test: (description: string) => boolean) =>
    parts
      .filter(({ description }) => !test(description ?? ""))
      .map(({ path, description }) => `${path}: ${description}`);

  it("exist for every type, field, argument, input field and enum value", () => {
    const kinds = [/^\w+$/, /^Action\.name$/, /^Query\.action\(id\)$/, /^TriggerInput\.where$/, /^RunState\.queued$/];
    for (const kind of kinds) expect(parts.some(({ path }) => kind.test(path))).to.equal(true);
    expect(failing((description) => description.trim() !== "")).to.deep.equal([]);
  });

  it("are sentences: they start with a capital letter, a digit or code and end with a period", () => {
    expect(failing((description) => /^[A-Z0-9{`].*\.$/s.test(description))).to.deep.equal([]);
  });

  it("are plain English", () => {
    expect(failing((description) => !NOT_PLAIN.test(description))).to.deep.equal([]);
  });
});
