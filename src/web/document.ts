/** Type of a GraphQL operation's text. The type also holds the types of the operation's result and variables. */

/** Text of a GraphQL operation: a plain string at run time. Its type names the types of the result and of the variables. */
export type Document<Answer, Variables> = string & { readonly types?: (variables: Variables) => Answer };
