/** Tests how the service searches the notifications of an app for those whose scope includes a user. */
import { expect } from "chai";
import { searchNewestNotifications } from "../../src/operations/notifications/notification-rows.js";
import { isUserInScope, type NotificationScope } from "../../src/rules/notification-scope.js";
import { publishNotifications } from "../harness/published-notifications.js";
import { startTestService, type TestService } from "../harness/service.js";
import { createNotificationCalls, type NotificationEntry } from "./notification-calls.js";

describe("notifications for a user", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());
  beforeEach(() => service.db.query("DELETE FROM notification"));

  const { call, published, titles, viewer } = createNotificationCalls(() => service);

  it("include the newest of a user, however many newer ones are for other users", async () => {
    const { email } = await viewer();
    await published("all");
    await published("mine", { scope: { email } });
    await publishNotifications(service.db, service.appId, 1_000, { email: "x@example.com" });
    await publishNotifications(service.db, service.appId, 1_000, { email: { $ne: email } });
    expect(await titles("viewer")).to.deep.equal(["mine", "all"]);
    expect((await call("GET", "/unread", undefined, "viewer")).count).to.equal(2);
    expect(await call("POST", "/read", { ids: "all" }, "viewer")).to.deep.equal({ count: 2 });
  });

  it("are searched beyond the newest 1,000 only while their scopes are no long lists", async () => {
    const others = Array.from({ length: 21 }, (_, id) => ({ email: `${id}@example.com` }));
    await published("all");
    await publishNotifications(service.db, service.appId, 999, others);
    expect(await titles("viewer")).to.deep.equal(["all"]);
    await publishNotifications(service.db, service.appId, 1, others);
    expect(await titles("viewer")).to.deep.equal([]);
  });

  it("have a total that is exact only if the search for them did not end at a limit", async () => {
    const { email } = await viewer();
    const query = "query Read($appId: Int!) { notifications(appId: $appId) { total totalIsExact } }";
    const read = async () => {
      const { data } = await service.graphql(query, { appId: service.appId }, { as: "viewer" });
      return data.notifications as { total: number; totalIsExact: boolean };
    };
    await published("all");
    await publishNotifications(service.db, service.appId, 998, { email });
    expect(await read()).to.deep.equal({ total: 999, totalIsExact: true });
    await publishNotifications(service.db, service.appId, 2, { email });
    expect(await read()).to.deep.equal({ total: 1_000, totalIsExact: false });
    await service.db.query("DELETE FROM notification");
    await published("all");
    const others = Array.from({ length: 21 }, (_, id) => ({ email: `${id}@example.com` }));
    await publishNotifications(service.db, service.appId, 1_000, others);
    expect(await read()).to.deep.equal({ total: 0, totalIsExact: false });
  });

  it("of every scope with the user are among those that the database selects", async () => {
    const user = {
      id: 7,
      tags: ["a", ["b"]],
      age: 5,
      isAdmin: false,
      address: { city: "Rome" },
      "x.y": "dotted",
      none: null,
    };
    const equal: NotificationScope[] = [
      { id: 7 },
      { tags: "a" },
      { tags: ["b"] },
      { age: 5 },
      { isAdmin: false },
      [{ id: 1 }, { id: 7 }],
    ];
    const other: NotificationScope[] = [
      { "address.city": "Rome" },
      { "x\\.y": "dotted" },
      { none: null },
      { missing: null },
      {},
      { age: { $gt: 4 } },
    ];
    const unequal: NotificationScope[] = [
      { id: 8 },
      { tags: "b" },
      { age: "5" },
      { isAdmin: true },
      { missing: 1 },
      { none: false },
      { id: 7, age: 6 },
      [],
    ];
    const expected = [...equal, ...other].map(() => true).concat(unequal.map(() => false));
    const scopes = [...equal, ...other, ...unequal];
    for (const [at, scope] of scopes.entries()) await published(String(at), { scope });
    const page = { before: null, limit: 100 };
    const search = (of: typeof user | null) =>
      searchNewestNotifications(service.db, service.appId, { key: "", user: of }, page);
    const { candidates } = await search(user);
    const stored = ((await call("GET", "?limit=100")).entries as NotificationEntry[]).reverse();
    expect(scopes.map((scope) => isUserInScope(scope, user))).to.deep.equal(expected);
    expect(stored.map(({ id }) => candidates.some((candidate) => candidate.id === id))).to.deep.equal(expected);
    expect((await search(null)).candidates).to.deep.equal([]);
  });
});
