/** Lets TypeScript accept imports of style sheets, which the bundler processes. */
declare module "*.css";
