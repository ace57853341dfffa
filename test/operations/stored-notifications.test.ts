/** Tests stored notifications: an app's backend writes them, and its users read them and mark them as read. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { createNotificationCalls, type NotificationEntry } from "./notification-calls.js";

describe("stored notifications", () => {
  let service: TestService;
  /** Token of a live page without a signed-in person. */
  let visitor: string;
  before(async () => {
    service = await useSharedService("api");
    visitor = (await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "live" } })).body.token;
  });
  after(() => service.stop());
  beforeEach(() => service.db.query("DELETE FROM notification WHERE app_id = $1", [service.appId]));

  const { call, insert, published, titles } = createNotificationCalls(() => service);

  it("have their data merged with extendData: its own fields, or those of data if it is true", async () => {
    const draft = await insert({ data: { title: "a" } });
    const extend = async (extendData: unknown, data?: object) =>
      (await call("PUT", `/${draft.id}`, { data, extendData })).data;
    expect(await extend({ more: 1 })).to.deep.equal({ title: "a", more: 1 });
    expect(await extend(true, { more: 2 })).to.deep.equal({ title: "a", more: 2 });
    expect(await extend(true)).to.deep.equal({ title: "a", more: 2 });
    expect(await extend(false, { more: 3 })).to.deep.equal({ more: 3 });
    expect((await call("PUT", `/${draft.id}`, { data: { title: "b" }, extendData: 1 })).status).to.equal(
      "REQUEST_INVALID",
    );
  });

  it("are drafts until they are published, and only then visible to app users", async () => {
    const draft = await insert({ data: { title: "a" } });
    expect(draft).to.include({ status: "draft", cursor: null });
    expect(await titles("viewer")).to.deep.equal([]);
    const changed = await call("PUT", `/${draft.id}`, { status: "published", extendData: { more: 1 } });
    expect(changed).to.deep.include({ status: "published", data: { title: "a", more: 1 } });
    expect(await titles("viewer")).to.deep.equal(["a"]);
    expect((await call("DELETE", `/${draft.id}`)).status).to.equal("NOTIFICATION_DELETED");
    expect((await call("DELETE", `/${draft.id}`)).status).to.equal("NOTIFICATION_NOT_FOUND");
    expect(await titles("viewer")).to.deep.equal([]);
    const trail = await service.rest("GET", `/v1/apps/${service.appId}/audit?limit=3`);
    expect(trail.body.entries.map(({ type }: { type: string }) => type)).to.deep.equal([
      "app.notification.delete",
      "app.notification.update",
      "app.notification.create",
    ]);
  });

  it("are marked as read by each user, one by one or all at once", async () => {
    const [first, , third] = [await published("a"), await published("b"), await published("c")];
    const countUnread = async (as: string) => (await call("GET", "/unread", undefined, as)).count;
    expect(await call("POST", "/read", { ids: [first.id, 2_000_000_000] }, "viewer")).to.deep.equal({ count: 1 });
    expect([await countUnread("viewer"), await countUnread(visitor)]).to.deep.equal([2, 3]);
    expect(await call("POST", "/read", { ids: "all" }, "viewer")).to.deep.equal({ count: 2 });
    expect([await countUnread("viewer"), await countUnread(visitor)]).to.deep.equal([0, 3]);
    expect((await call("POST", "/read", { ids: [first.id, { id: first.id }] }, "viewer")).error).to.equal(
      "ids[1] must be the ID of a notification, a positive whole number (got an object)",
    );
    await published("d");
    expect(await countUnread("viewer")).to.equal(1);
    const { entries } = await call("GET", "", undefined, "viewer");
    expect(entries.map(({ readStatus }: NotificationEntry) => readStatus)).to.deep.equal([false, true, true, true]);
    expect(third.readStatus).to.equal(false);
  });

  it("are the same over GraphQL", async () => {
    const made = await service.graphql(
      `mutation ($app: Int!) { createNotification(appId: $app, notification: {status: published, data: {title: "g"}}) { id status } }`,
      { app: service.appId },
    );
    const { id } = made.data.createNotification;
    const read = await service.graphql(
      `mutation ($app: Int!, $ids: [Int!]) { markNotificationsRead(appId: $app, ids: $ids) { count } }`,
      { app: service.appId, ids: [id] },
      { as: "viewer" },
    );
    expect(read.data.markNotificationsRead).to.deep.equal({ count: 1 });
    const list = await service.graphql(
      `query ($app: Int!) { notifications(appId: $app) { entries { data readStatus } } unreadNotifications(appId: $app) { count } }`,
      { app: service.appId },
      { as: "viewer" },
    );
    expect(list.data.notifications.entries).to.deep.equal([{ data: { title: "g" }, readStatus: true }]);
  });

  it("have over GraphQL their number and whether more follow, for what the caller may see", async () => {
    for (const status of ["draft", "published", "published"]) {
      const body = { status, data: { title: "one of several" } };
      await service.rest("POST", `/v1/apps/${service.appId}/notifications`, { body });
    }
    for (const as of ["editor", "viewer"] as const) {
      const all = await service.graphql(
        "query ($app: Int!) { notifications(appId: $app, limit: 100) { entries { id } pagination { total hasMore } } }",
        { app: service.appId },
        { as },
      );
      const { entries, pagination } = all.data.notifications;
      expect(pagination, as).to.deep.equal({ total: entries.length, hasMore: false });
      const first = await service.graphql(
        "query ($app: Int!) { notifications(appId: $app, limit: 1) { entries { id } pagination { total hasMore } } }",
        { app: service.appId },
        { as },
      );
      expect(first.data.notifications.pagination, as).to.deep.equal({ total: entries.length, hasMore: true });
    }
  });
});
