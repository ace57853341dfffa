/** Queries that GraphiQL shows on a first visit. They lead from creating an action to reading its log. */

/** Operations to run one after the other with the play button. */
export const FIRST_VISIT_QUERY = `# 1. Paste a token into Headers, below.
# 2. Press play and take the operations in turn.
#
# The first app has the id 1; its tokens are in
# .data/credentials.json, made at the first start.

mutation CreateAction {
  createAction(
    appId: 1
    data: {
      name: "first"
      active: true
      triggers: [{ trigger: manual }]
      code: """
      async function execute(context) {
        return { hello: context.payload.name };
      }
      """
    }
  ) {
    id
    name
    active
    environment
  }
}

mutation RunAction {
  runActionWithResult(
    appId: 1
    nameOrId: "first"
    payload: { name: "world" }
  ) {
    runId
    result
  }
}

query ReadLog {
  actionLogs(appId: 1, options: { limit: 5 }) {
    count
    logs {
      type
      createdAt
      data
    }
  }
}

# Follows the log as it grows: start this one,
# then run the action in a second tab.
subscription FollowLog {
  actionLogAdded(appId: 1) {
    type
    createdAt
    data
  }
}
`;

export const FIRST_VISIT_HEADERS = `{
  // An editor's token. It is stored only in this tab.
  // "Authorization": "Bearer …" works as well.
  "Auth-token": ""
}
`;
