/**
 * Tests the list of a data source's recent kinds of queries, over both APIs: its editors can read it, callers under access rules cannot.
 */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

const LIST = `query ($appId: Int!, $id: ID!) {
  dataSourceQueries(appId: $appId, dataSourceId: $id) { where order aggregate count p95Ms lastAt index suggestion }
}`;

describe("the recent queries of a data source", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
    const entries = [{ Row: "A", Seat: 1 }];
    await service.rest("POST", base, { body: { name: "Seats", indexes: ["Row"], entries } });
  });
  after(() => service.stop());

  const find = (body: object) => service.rest("POST", `${base}/Seats/query`, { body });
  const queries = async () => (await service.rest("GET", `${base}/Seats/queries`)).body.queries;

  it("are listed latest first with the index that they use, or one that would help, the same over REST and GraphQL", async () => {
    expect(await queries()).to.deep.equal([]);
    await find({ where: { Row: "A" } });
    await find({ where: { Seat: { $gt: 0 } }, order: [["data.Seat", "DESC"]] });
    await find({ where: { Row: "B" } });
    expect((await find({ where: { Row: { $wrong: 1 } } })).http).to.equal(400);
    await find({ where: { Unheard: 1 } });
    const listed = await queries();
    const [first, second] = listed;
    expect(listed).to.have.length(2);
    expect(first).to.include({ count: 2, suggestion: null, aggregate: false });
    expect([first.where, first.order, first.index]).to.deep.equal([["Row $eq"], [], ["Row"]]);
    expect([second.where, second.order, second.index, second.suggestion, second.count]).to.deep.equal([
      ["Seat $gt"],
      ["Seat DESC"],
      null,
      ["Seat"],
      1,
    ]);
    expect(first.p95Ms).to.be.greaterThan(0);
    expect(Date.parse(first.lastAt)).to.be.within(Date.now() - 60_000, Date.now());
    const answer = await service.graphql(LIST, { appId: service.appId, id: "Seats" });
    expect(answer.data?.dataSourceQueries).to.deep.equal(listed);
  });

  it("are for callers who may read the data source's definition, and not for pages", async () => {
    for (const as of ["live", "viewer", null] as const) {
      const seen = (await service.rest("GET", `${base}/Seats/queries`, { as })).http;
      const defined = (await service.rest("GET", `${base}/Seats`, { as })).http;
      expect(seen, String(as)).to.equal(defined).and.to.be.within(401, 403);
    }
    expect((await service.rest("GET", `${base}/Elsewhere/queries`)).body.status).to.equal("DATA_SOURCE_NOT_FOUND");
  });
});
