/** Declares imports of style sheets for TypeScript. The bundler handles these imports. */
declare module "*.css";
