/** Type of a GraphQL operation's text. The type also holds the types of the operation's result and variables. */

/** A plain string at run time. Its type carries the types of the result and the variables. */
export type Document<Answer, Variables> = string & { readonly types?: (variables: Variables) => Answer };
