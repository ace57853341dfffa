/** The text of a GraphQL operation that knows the types of its answer and its variables. */

/** A string, and nothing else, once it runs. */
export type Document<Answer, Variables> = string & { readonly types?: (variables: Variables) => Answer };
