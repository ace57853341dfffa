import { expect } from "chai";
import { Kind, parse, validate } from "graphql";
import { loadSchema } from "../../src/api/graphql/schema.js";
import { FIRST_VISIT_QUERY } from "../../src/web/graphiql/first-visit.js";
import { longTest } from "../harness/samples.js";
import { startTestService } from "../harness/service.js";

describe("GraphiQL's first query", () => {
  it("is valid against the service's own schema", async () => {
    const schema = await loadSchema();
    expect(validate(schema, parse(FIRST_VISIT_QUERY)).map(({ message }) => message)).to.deep.equal([]);
  });

  longTest("runs unchanged, operation after operation, beside the objects of the README", async () => {
    const service = await startTestService();
    const readmeAction = { name: "hello", code: "async function execute() {}" };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: readmeAction });
    const document = parse(FIRST_VISIT_QUERY);
    const operationNames = document.definitions.flatMap((definition) =>
      definition.kind === Kind.OPERATION_DEFINITION && definition.operation !== "subscription"
        ? [definition.name!.value]
        : [],
    );
    const answers: Record<string, unknown> = {};
    for (const operationName of operationNames) {
      const body = { query: FIRST_VISIT_QUERY, operationName };
      const { data, errors } = (await service.rest("POST", "/graphql", { body })).body;
      expect(errors, operationName).to.equal(undefined);
      answers[operationName] = data;
    }
    expect(answers["RunAction"]).to.have.nested.property("runActionWithResult.result.hello", "world");
    expect(answers["ReadLog"]).to.have.nested.property("actionLogs.count", 1);
    await service.stop();
  });
});
