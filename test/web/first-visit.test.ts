import { expect } from "chai";
import { parse, validate } from "graphql";
import { createSchema, type Resolvers } from "../../src/api/graphql/schema.js";
import { FIRST_QUERY } from "../../src/web/graphiql/first-visit.js";

describe("GraphiQL's first query", () => {
  it("is valid against the service's own schema", async () => {
    const schema = await createSchema({} as Resolvers);
    expect(validate(schema, parse(FIRST_QUERY)).map(({ message }) => message)).to.deep.equal([]);
  });
});
