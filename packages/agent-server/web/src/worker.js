// The service worker: it keeps the shell of the page, so that the page opens without a network. Answers of the API
// are never kept. A build with another shell is another worker, which waits until somebody reloads the page.

const SHELL = ["/", /* files of the build */];
const NAME = "shell HASH";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(SHELL)));
});

self.addEventListener("activate", (event) => {
  const old = caches.keys().then((names) => Promise.all(names.filter((name) => name !== NAME).map((name) => caches.delete(name))));
  event.waitUntil(old.then(() => self.clients.claim()));
});

self.addEventListener("message", (event) => {
  if (event.data === "take over") void self.skipWaiting();
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin || !SHELL.includes(url.pathname) || url.search) return;
  if (url.pathname === "/") event.respondWith(fetch(event.request).catch(() => kept("/")));
  else event.respondWith(kept(url.pathname).then((found) => (found.ok ? found : fetch(event.request))));
});

async function kept(path) {
  return (await (await caches.open(NAME)).match(path)) ?? Response.error();
}
