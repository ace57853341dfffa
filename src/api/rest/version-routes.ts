/** REST routes of version history and comparisons: entries for the route table in rest/routes.ts. */
import type { Action } from "../../operations/actions/action-rows.js";
import type { ActionComparison } from "../../operations/actions/comparison.js";
import { createWarningsField } from "./action-routes.js";
import type { Route } from "./route.js";

const removeComparedVersions = ({ before, after, ...diff }: ActionComparison) => diff;

const ACTION_ROUTE = "/v3/apps/:appId/actions/:actionId";

export const versionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${ACTION_ROUTE}/versions`,
    handle: async ({ actionVersions }, request) => {
      const onlyPublished = request.queryFlag("published");
      const ids = [request.pathId("appId"), request.pathId("actionId")] as const;
      const list = await actionVersions.actionVersions(
        request.context,
        ...ids,
        request.queryNumber("limit"),
        request.queryNumber("offset"),
        onlyPublished,
      );
      // The specification allows `publishedAt` only in lists of published versions.
      if (!onlyPublished) for (const version of list.versions) delete version.publishedAt;
      return { status: "VERSIONS_LISTED", ...list };
    },
  },
  {
    method: "GET",
    path: `${ACTION_ROUTE}/versions/:versionId`,
    handle: async ({ actionVersions }, request) => ({
      status: "VERSION_RETRIEVED",
      version: await actionVersions.actionVersion(
        request.context,
        request.pathId("appId"),
        request.pathId("actionId"),
        request.pathId("versionId"),
      ),
    }),
  },
  {
    method: "POST",
    path: `${ACTION_ROUTE}/versions/:versionId/restore`,
    canReturnWarnings: true,
    handle: async ({ actionVersions }, request) => {
      const ids = [request.pathId("appId"), request.pathId("actionId"), request.pathId("versionId")] as const;
      const restoredAction = await actionVersions.restoreActionVersion(
        request.context,
        ...ids,
        request.readExpectedVersions(),
      );
      const { action } = restoredAction as { action: Action };
      return request.setTag(action, { status: "ACTION_RESTORED", ...restoredAction, ...createWarningsField(action) });
    },
  },
  {
    method: "GET",
    path: `${ACTION_ROUTE}/versions/:versionId/diff`,
    handle: async ({ actionVersions }, request) => {
      const ids = [request.pathId("appId"), request.pathId("actionId"), request.pathId("versionId")] as const;
      return {
        status: "VERSIONS_COMPARED",
        diff: removeComparedVersions(
          await actionVersions.actionVersionDiff(request.context, ...ids, request.queryText("against")),
        ),
      };
    },
  },
  {
    method: "GET",
    path: `${ACTION_ROUTE}/diff`,
    handle: async ({ actionVersions }, request) => ({
      status: "COPIES_COMPARED",
      diff: removeComparedVersions(
        await actionVersions.actionDiff(request.context, request.pathId("appId"), request.pathId("actionId")),
      ),
    }),
  },
];
