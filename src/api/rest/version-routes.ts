/** Version history and comparisons over REST, as rows of the REST table. */
import type { Action } from "../../operations/actions/action-rows.js";
import type { Comparison } from "../../operations/actions/comparison.js";
import { withWarnings } from "./action-routes.js";
import type { Route } from "./route.js";

/** Returns the differences without the two complete versions that were compared. */
const diffOf = ({ before: _, after: __, ...diff }: Comparison) => diff;

const ACTION = "/v3/apps/:appId/actions/:actionId";

export const versionRoutes: readonly Route[] = [
  {
    method: "GET",
    path: `${ACTION}/versions`,
    answer: async ({ versions }, q) => {
      const onlyPublished = q.flag("published");
      const ids = [q.id("appId"), q.id("actionId")] as const;
      const list = await versions.actionVersions(
        q.context,
        ...ids,
        q.number("limit"),
        q.number("offset"),
        onlyPublished,
      );
      // The specification names all fields of a summary. Only the list of published versions also has the time of a publish.
      if (!onlyPublished) for (const version of list.versions) delete version.publishedAt;
      return { status: "VERSIONS_LISTED", ...list };
    },
  },
  {
    method: "GET",
    path: `${ACTION}/versions/:versionId`,
    answer: async ({ versions }, q) => ({
      status: "VERSION_RETRIEVED",
      version: await versions.actionVersion(q.context, q.id("appId"), q.id("actionId"), q.id("versionId")),
    }),
  },
  {
    method: "POST",
    path: `${ACTION}/versions/:versionId/restore`,
    warns: true,
    answer: async ({ versions }, q) => {
      const ids = [q.id("appId"), q.id("actionId"), q.id("versionId")] as const;
      const restoredAction = await versions.restoreActionVersion(q.context, ...ids, q.ifMatch());
      const { action } = restoredAction as { action: Action };
      return q.at(action, { status: "ACTION_RESTORED", ...restoredAction, ...withWarnings(action) });
    },
  },
  {
    method: "GET",
    path: `${ACTION}/versions/:versionId/diff`,
    answer: async ({ versions }, q) => {
      const ids = [q.id("appId"), q.id("actionId"), q.id("versionId")] as const;
      return {
        status: "VERSIONS_COMPARED",
        diff: diffOf(await versions.actionVersionDiff(q.context, ...ids, q.text("against"))),
      };
    },
  },
  {
    method: "GET",
    path: `${ACTION}/diff`,
    answer: async ({ versions }, q) => ({
      status: "COPIES_COMPARED",
      diff: diffOf(await versions.actionDiff(q.context, q.id("appId"), q.id("actionId"))),
    }),
  },
];
