/** REST routes of version history and comparisons: entries for the route table in rest/routes.ts. */
import type { Action } from "../../operations/actions/action-rows.js";
import type { Comparison } from "../../operations/actions/comparison.js";
import { withWarnings } from "./action-routes.js";
import type { Route } from "./route.js";

/** Returns the differences of a comparison, without the two complete versions. */
const diffOf = ({ before: _, after: __, ...diff }: Comparison) => diff;

const ACTION = "/v3/apps/:appId/actions/:actionId";

export const versionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${ACTION}/versions`,
    handle: async ({ versions }, request) => {
      const onlyPublished = request.flag("published");
      const ids = [request.id("appId"), request.id("actionId")] as const;
      const list = await versions.actionVersions(
        request.context,
        ...ids,
        request.number("limit"),
        request.number("offset"),
        onlyPublished,
      );
      // The specification allows `publishedAt` only in lists of published versions.
      if (!onlyPublished) for (const version of list.versions) delete version.publishedAt;
      return { status: "VERSIONS_LISTED", ...list };
    },
  },
  {
    method: "GET",
    path: `${ACTION}/versions/:versionId`,
    handle: async ({ versions }, request) => ({
      status: "VERSION_RETRIEVED",
      version: await versions.actionVersion(
        request.context,
        request.id("appId"),
        request.id("actionId"),
        request.id("versionId"),
      ),
    }),
  },
  {
    method: "POST",
    path: `${ACTION}/versions/:versionId/restore`,
    canReturnWarnings: true,
    handle: async ({ versions }, request) => {
      const ids = [request.id("appId"), request.id("actionId"), request.id("versionId")] as const;
      const restoredAction = await versions.restoreActionVersion(request.context, ...ids, request.ifMatch());
      const { action } = restoredAction as { action: Action };
      return request.setTag(action, { status: "ACTION_RESTORED", ...restoredAction, ...withWarnings(action) });
    },
  },
  {
    method: "GET",
    path: `${ACTION}/versions/:versionId/diff`,
    handle: async ({ versions }, request) => {
      const ids = [request.id("appId"), request.id("actionId"), request.id("versionId")] as const;
      return {
        status: "VERSIONS_COMPARED",
        diff: diffOf(await versions.actionVersionDiff(request.context, ...ids, request.text("against"))),
      };
    },
  },
  {
    method: "GET",
    path: `${ACTION}/diff`,
    handle: async ({ versions }, request) => ({
      status: "COPIES_COMPARED",
      diff: diffOf(await versions.actionDiff(request.context, request.id("appId"), request.id("actionId"))),
    }),
  },
];
