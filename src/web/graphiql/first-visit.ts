/** What GraphiQL shows on a first visit: the main job from creating an action to reading its log. */

/** Run one operation after the other with the play button. */
export const FIRST_QUERY = `# 1. Paste a token into Headers, below.
# 2. Check the app's id in Variables.
# 3. Press play and take the operations in turn.
#
# The first app's id and tokens are in
# .data/credentials.json, made at the first start.

mutation CreateAction($appId: Int!) {
  createAction(
    appId: $appId
    data: {
      name: "hello"
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

mutation RunAction($appId: Int!) {
  runActionWithResult(
    appId: $appId
    nameOrId: "hello"
    payload: { name: "world" }
  ) {
    runId
    result
  }
}

query ReadLog($appId: Int!) {
  actionLogs(appId: $appId, options: { limit: 5 }) {
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
subscription FollowLog($appId: Int!) {
  actionLogAdded(appId: $appId) {
    type
    createdAt
    data
  }
}
`;

export const FIRST_VARIABLES = `{
  "appId": 1
}
`;

export const FIRST_HEADERS = `{
  // An editor's token. Kept in this tab alone.
  // "Authorization": "Bearer …" works as well.
  "Auth-token": ""
}
`;
