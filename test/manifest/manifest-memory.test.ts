import "reflect-metadata";
import { createHash } from "node:crypto";
import { expect } from "chai";
import type { RequestContext } from "../../src/api/context.js";
import { ManifestResolver } from "../../src/api/graphql/manifest-resolver.js";
import { StageResolver } from "../../src/api/graphql/stage-resolver.js";
import { ActionError } from "../../src/errors.js";
import { MANIFEST_MAX_BYTES } from "../../src/limits.js";
import { ActionImporter } from "../../src/operations/actions/import-steps.js";
import { Manifests } from "../../src/operations/manifest/manifests.js";
import { type ConnectedDatabase, connectedDatabase } from "../harness/connected-database.js";

const CODE_BYTES = 1_000;

describe("the memory for manifests", () => {
  let database: ConnectedDatabase;
  const appIds = { small: 1, large: 2, otherLarge: 3 };

  before(async () => {
    database = await connectedDatabase(5);
    await database.db.query("INSERT INTO organization (name) VALUES ('o')");
    await database.db.query("INSERT INTO app (organization_id, name) VALUES (1, 'a'), (1, 'b'), (1, 'c')");
    const sizes = [
      [appIds.small, CODE_BYTES],
      [appIds.large, MANIFEST_MAX_BYTES],
      [appIds.otherLarge, MANIFEST_MAX_BYTES],
    ];
    for (const [appId, bytes] of sizes)
      await database.db.query(
        `INSERT INTO action (app_id, name, code, active, environment, action_version, triggers, dependencies, assets, updated_at)
         VALUES ($1, 'task', repeat('x', $2::int), true, 'server', 'v3', '[]', '[]', '[]', now())`,
        [appId, bytes],
      );
  });
  after(() => database.stop());

  const createManifests = (actionImporter: Pick<ActionImporter, "listDrafts">) =>
    new Manifests({ db: database.db, actionImporter } as never);

  it("is reserved before a plan, an apply, a promotion, a rollback and a new stage, which are else rejected", async () => {
    const reserved: number[] = [];
    const reserveBytes = async (bytes: number) => {
      reserved.push(bytes);
      throw new ActionError("OVERLOADED");
    };
    const context = { responseBudget: { reserveBytes } } as unknown as RequestContext;
    const accessChecks = { requireAppAccess: async () => ({}), recheck: () => {} } as never;
    const manifests = createManifests({ listDrafts: async () => [] });
    const ofManifests = new ManifestResolver(accessChecks, manifests, async () => "");
    const stageResolver = new StageResolver(accessChecks, {} as never, {} as never, manifests);
    const apply = (appId: number, isPlan: boolean) =>
      ofManifests.applyManifest(context, appId, { version: 1 }, null, isPlan, false);
    for (const request of [
      () => apply(appIds.small, true),
      () => apply(appIds.small, false),
      () => stageResolver.promote(context, appIds.small, appIds.large, true, null),
      () => stageResolver.rollbackPromotion(context, appIds.small, 1),
      () => stageResolver.createStageOf(context, appIds.small, { name: "test" }),
      () => apply(appIds.large, true),
    ]) {
      const error = await request().then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(error).to.be.instanceOf(ActionError).and.to.include({ status: "OVERLOADED" });
    }
    expect(reserved).to.have.length(6);
    const [small] = reserved as [number];
    expect(small).to.be.within(CODE_BYTES, CODE_BYTES + 100);
    expect(reserved).to.deep.equal([small, small, MANIFEST_MAX_BYTES, small, small, MANIFEST_MAX_BYTES]);
  });

  it("is used by one app at a time whose definitions are larger than a manifest can be", async () => {
    let reads = 0;
    let mostReads = 0;
    const actionImporter = {
      async listDrafts() {
        reads += 1;
        mostReads = Math.max(mostReads, reads);
        for (let statement = 0; statement < 20; statement += 1) await database.db.query("SELECT");
        reads -= 1;
        return [];
      },
    };
    const manifests = createManifests(actionImporter);
    await Promise.all([appIds.large, appIds.otherLarge, appIds.large].map((appId) => manifests.readTag(appId)));
    expect(mostReads).to.equal(1);
  });

  it("holds no text of the whole manifest for its tag, which is the hash of this text", async () => {
    const manifests = createManifests(new ActionImporter({ db: database.db } as never));
    const { tag, manifest } = await manifests.get(appIds.small);
    expect(manifest.actions).to.have.length(1);
    const hash = createHash("sha256").update(JSON.stringify(manifest)).digest("base64url");
    expect(tag).to.equal(hash.slice(0, 22));
  });
});
