/** Type of a GraphQL operation's text. The type also holds the types of the operation's result and variables. */

export type Document<Answer, Variables> = string & { readonly types?: (variables: Variables) => Answer };
