import { expect } from "chai";
import { draftToActionInput } from "../../src/web/studio/actions/draft.js";
import { ACTION_TEMPLATES, createDraftFromTemplate } from "../../src/web/studio/actions/templates.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

describe("the templates of Studio", () => {
  let service: TestService;
  before(async () => {
    service = await useSharedService("api");
  });
  after(() => service.stop());

  it("are accepted by the service unchanged", async () => {
    for (const name of Object.keys(ACTION_TEMPLATES)) {
      const made = await service.rest("POST", `/v3/apps/${service.appId}/actions`, {
        body: draftToActionInput(createDraftFromTemplate(name)),
      });
      expect(made.http, JSON.stringify(made.body)).to.equal(201);
      // The other templates have a schedule, start by events, or make the service request a URL. So only editors can start their actions.
      const forVisitors = name === "hello" || name === "client";
      expect(made.body.action.access, name).to.equal(forVisitors ? "everyone" : "editors");
    }
  });

  it("have a trigger that can start them in their environment", () => {
    for (const name of Object.keys(ACTION_TEMPLATES)) {
      const { environment, triggers } = createDraftFromTemplate(name);
      // Only analytics events start client actions.
      const startsIt = environment === "client" ? "analytics" : "manual";
      expect(
        triggers.map(({ trigger }) => trigger),
        name,
      ).to.include(startsIt);
    }
  });
});
