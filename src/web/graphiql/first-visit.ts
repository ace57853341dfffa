/** Texts that GraphiQL shows on a first visit: headers, and operations from the creation of an action to its log entries. */

export const FIRST_VISIT_QUERY = `# 1. Paste a token into Headers, below.
# 2. Press the play button. Run the operations
#    one after the other.
#
# The first app has the ID 1. The first start of the
# service wrote its tokens to .data/credentials.json.

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

# Receives new log entries: start this subscription,
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
  // Token of an editor. GraphiQL does not store it.
  // You can also use "Authorization": "Bearer …".
  "Auth-token": ""
}
`;
